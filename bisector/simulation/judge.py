"""Judge a simulated bisection: what the planner concluded against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import Mask
from bisector.model.decisions import NEWEST_IS_NONE, NO_FRESH_BOOTS_TELL, Conclusion, Ending, Purpose
from bisector.simulation.histories import ancestors
from bisector.simulation.noise_model import SyntheticLab
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import SimulatedBisection, SimulatedCost
from bisector.simulation.stated_claims import IntervalKind, check_statements

Verdict = Literal[
    "correct", "set", "incomplete", "wrong", "inconclusive", "not_reproduced", "spread", "fixed"
]
"""'set' holds the culprit and only commits that no test can tell from it; 'incomplete' names true culprits
but not all of them; 'wrong' is any false claim; the last four are endings of the bisection."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The numbers of one simulated bisection, small enough to send between processes.

    right: it is the best answer that the data allow; confident: the planner claimed something (all endings
    but inconclusive, and that one where it says something false); claim_wrong: a claim is false, of the
    ending or of those in false_claims. held: (intervals that hold the truth, all) by kind. parts: what was
    spent, by purpose. cpu, slowest: planner seconds in all, and of the slowest decision.
    """

    verdict: Verdict
    right: bool
    confident: bool
    claim_wrong: bool
    set_size: int
    confidence: float
    false_claims: tuple[str, ...]
    held: Mapping[IntervalKind, tuple[int, int]]
    spent: SimulatedCost
    parts: dict[Purpose, SimulatedCost]
    wall: float
    decisions: int
    cpu: float
    slowest: float
    warnings: tuple[str, ...]


def judge(scenario: Scenario, bisection: SimulatedBisection) -> Judged:
    """Compare the conclusion of a simulated bisection with its truth."""
    lab, conclusion = bisection.lab, bisection.conclusion
    verdict, right, wrong, size = _verdict(scenario, lab, conclusion)
    stated = check_statements(scenario, lab, conclusion)
    if stated.false_claims:
        verdict, right, wrong = "wrong", False, True
    return Judged(
        verdict=verdict,
        right=right,
        confident=wrong or conclusion.ending is not Ending.INCONCLUSIVE,
        claim_wrong=wrong,
        set_size=size,
        confidence=conclusion.confidence,
        false_claims=stated.false_claims,
        held=stated.held,
        spent=bisection.total(),
        parts=bisection.spent,
        wall=bisection.wall,
        decisions=bisection.decisions,
        cpu=bisection.cpu,
        slowest=bisection.slowest,
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
    size = max((len(f.commits) for f in conclusion.large), default=0)
    hits: set[int] = set()
    for finding in conclusion.large:
        named = finding.commits[:-1] if NEWEST_IS_NONE in finding.note else finding.commits
        inside = truth.intersection(named)
        alike = () if NO_FRESH_BOOTS_TELL in finding.note else named
        if not inside or not all(_indistinguishable(lab, c, min(inside)) for c in alike):
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
