"""Judge a simulated bisection: what the planner concluded against the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import Mask
from bisector.model.decisions import Conclusion, Ending, Purpose
from bisector.simulation.histories import ancestors
from bisector.simulation.noise_model import SyntheticLab
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import SimulatedBisection, SimulatedCost

Verdict = Literal[
    "correct", "set", "incomplete", "wrong", "inconclusive", "not_reproduced", "spread", "fixed"
]
"""'set' holds the culprit and only commits that no test can tell from it; 'incomplete' names true culprits
but not all of them; the last four are endings of the bisection."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The numbers of one simulated bisection, small enough to send between processes.

    right: it is the best answer that the data allow; confident: the planner claimed something (all endings
    but inconclusive); claim_wrong: that claim is false. total_right: the interval stated for the total holds
    the truth, None if none was stated. parts: what was spent, by purpose.
    """

    verdict: Verdict
    right: bool
    confident: bool
    claim_wrong: bool
    set_size: int
    confidence: float
    total_right: bool | None
    spent: SimulatedCost
    parts: dict[Purpose, SimulatedCost]
    wall: float
    decisions: int
    cpu: float
    warnings: tuple[str, ...]


def judge(scenario: Scenario, bisection: SimulatedBisection) -> Judged:
    """Compare the conclusion of a simulated bisection with its truth."""
    lab, conclusion = bisection.lab, bisection.conclusion
    verdict, right, wrong, size = _verdict(scenario, lab, conclusion)
    total_right = None
    totals = {_total(lab, name) for name in conclusion.searched_on or scenario.testbed_names}
    if conclusion.total is not None and len(totals) == 1:  # a mean of different ones is nowhere true
        sign = 1.0 if scenario.lab.better == "lower" else -1.0
        truth = sign * totals.pop() / 100.0
        total_right = conclusion.total.low <= truth <= conclusion.total.high
    return Judged(
        verdict=verdict,
        right=right,
        confident=conclusion.ending is not Ending.INCONCLUSIVE,
        claim_wrong=wrong,
        set_size=size,
        confidence=conclusion.confidence,
        total_right=total_right,
        spent=bisection.total(),
        parts=bisection.spent,
        wall=bisection.wall,
        decisions=bisection.decisions,
        cpu=bisection.cpu,
        warnings=conclusion.warnings,
    )


def _verdict(
    scenario: Scenario, lab: SyntheticLab, conclusion: Conclusion
) -> tuple[Verdict, bool, bool, int]:
    """Return (verdict, right, the claim is false, size of the largest set).

    Where testbeds differ, the loss is there if one shows it, and it is false to say that another one does.
    """
    limit = scenario.limit * (1 - 1e-9)
    truth = set(lab.culprits)
    largest = max((abs(t.effect) for t in scenario.lab.testbeds), default=1.0)
    wanted = {c for c, effect in lab.culprits.items() if abs(effect) * largest >= limit}
    losses = [_total(lab, name) for name in scenario.testbed_names]
    total = max(abs(loss) for loss in losses)
    if any(_total(lab, name) <= 0 for name in conclusion.searched_on):
        return "wrong", False, True, 0
    match conclusion.ending:
        case Ending.INCONCLUSIVE:
            return "inconclusive", False, False, 0
        case Ending.NOT_REPRODUCED:
            # Improvements are not regressions, and losses that cancel are searched on request only.
            worse = max(losses) >= limit
            missed = worse or (scenario.scan and bool(wanted))
            return "not_reproduced", not missed, missed, 0
        case Ending.SPREAD:
            right = not wanted and total >= limit
            return "spread", right, not right, 0
        case Ending.FIXED_ON_GOOD_SIDE:
            base = [abs(lab.truth(b) - lab.truth(lab.graph.good)) for b in lab.graph.merge_bases]
            true = any(x >= limit / 2 for x in base)
            return "fixed", true, not true, 0
        case _:
            pass
    size = max((len(f.commits) for f in conclusion.culprits), default=0)
    hits: set[int] = set()
    for finding in conclusion.culprits:
        inside = truth.intersection(finding.commits)
        if not inside or not all(_indistinguishable(lab, c, min(inside)) for c in finding.commits):
            return "wrong", False, True, size
        hits |= inside
    if not hits:
        return "wrong", False, True, size
    if not wanted <= hits:
        return "incomplete", False, False, size
    return ("correct" if size == 1 else "set"), True, False, size


def _total(lab: SyntheticLab, testbed: str) -> float:
    return lab.truth(lab.graph.bad, testbed) - lab.truth(lab.graph.good, testbed)


def _indistinguishable(lab: SyntheticLab, one: int, other: int) -> bool:
    """Return whether no test can tell which of two commits is the culprit.

    It is so if every testable commit contains both or neither. A commit whose binary is that of a commit
    outside does not count as a test.
    """
    if one == other:
        return True
    graph = lab.graph
    apart = _descendants(graph, one) ^ _descendants(graph, other)
    for commit in np.flatnonzero(apart):
        c = int(commit)
        if c not in lab.untestable and not _has_binary_from_outside(lab, c, apart):
            return False
    return True


def _has_binary_from_outside(lab: SyntheticLab, commit: int, apart: Mask) -> bool:
    """Return whether a commit's binary is also that of an ancestor which is not in the mask `apart`."""
    binary = lab.binary(commit)
    while len(lab.graph.parents[commit]) == 1:
        commit = lab.graph.parents[commit][0]
        if lab.binary(commit) != binary:
            return False
        if not apart[commit]:
            return True
    return False


def _descendants(graph: CommitGraph, commit: int) -> Mask:
    """Return the mask (n,) of the ancestors of bad that contain a commit, itself included."""
    mask = np.zeros(len(graph.shas), dtype=bool)
    mask[commit] = True
    for i in range(commit + 1, len(graph.shas)):
        parents = graph.parents[i]
        if parents and any(mask[p] for p in parents):
            mask[i] = True
    return mask & ancestors(graph, graph.bad)
