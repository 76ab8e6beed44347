"""The rivals, on the same synthetic labs as perfbisect: git-bayesect 1.2, and git bisect with k runs a step.

Both are told the true midpoint between good and bad, verify no ends and prove nothing. They get the kindest
lab: builds are kept, and a boot lives on while the same commit is asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from git_bayesect import Bisector

from bisector.model.commit_graph import CommitGraph
from bisector.simulation.noise_model import SyntheticBoot, SyntheticLab

CONFIDENCES = (0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999)
RUNS_A_STEP = (
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    12,
    14,
    17,
    20,
    24,
    28,
    34,
    40,
    48,
    58,
    70,
    84,
    100,
    120,
    144,
    172,
    206,
)


@dataclass
class Outcome:
    """One search by a rival at one setting of its knob."""

    correct: bool
    runs: int
    boots: int
    builds: int
    cost: float


class Bench:
    """A lab with one testbed that counts what is used."""

    def __init__(self, lab: SyntheticLab) -> None:
        self.lab = lab
        self.good, self.bad = lab.truth(lab.graph.good), lab.truth(lab.graph.bad)
        self.middle = lab.value((self.good + self.bad) / 2)
        self.high = lab.value(self.bad) > lab.value(self.good)
        self.built: set[int] = set()
        self.runs = self.boots = 0
        self.time = 0.0
        self.commit = -1
        self.boot: SyntheticBoot | None = None
        self.index = 0

    def visit(self, commit: int, fresh: bool = False) -> bool:
        """Build and boot unless that is so already; False if the commit cannot be tested."""
        model = self.lab.model
        if commit == self.commit and self.boot is not None and not fresh:
            return True
        if commit not in self.built:
            self.built.add(commit)
            self.time += model.build_seconds
        if self.lab.untestable.get(commit) == "build":
            return False
        self.boots += 1
        self.time += model.boot_seconds
        if commit in self.lab.untestable:
            return False
        self.commit, self.index = commit, 0
        self.boot = self.lab.boot(commit, 0, "rival", str(self.boots))
        return True

    def run(self) -> float:
        """Run once in the live boot."""
        assert self.boot is not None
        self.runs += 1
        self.time += self.lab.model.run_seconds
        value = self.boot.run(self.index, self.time)
        self.index += 1
        return value

    def outcome(self, correct: bool) -> Outcome:
        return Outcome(correct, self.runs, self.boots, len(self.built), self.time)


def first_parent_line(graph: CommitGraph) -> list[int]:
    """Return the commits that git-bayesect looks at, newest first, good's end last."""
    line = [graph.bad]
    while graph.candidate[line[-1]] and graph.parents[line[-1]]:
        line.append(graph.parents[line[-1]][0])
    return line


def bayesect(lab: SyntheticLab, most: int) -> list[Outcome]:
    """Run `git bayesect run` once; what it would have answered at each confidence as it passes it.

    most: runs after which it is given up (where boots or layouts differ it may never be sure).
    """
    line = first_parent_line(lab.graph)
    bench = Bench(lab)
    bisector = Bisector(np.ones(len(line)))
    outcomes: list[Outcome] = []
    skipped: set[int] = set()
    while len(outcomes) < len(CONFIDENCES):
        top = float(bisector.distribution.max())
        while len(outcomes) < len(CONFIDENCES) and bench.runs and top >= CONFIDENCES[len(outcomes)]:
            answer = line[int(np.argmax(bisector.distribution))]
            outcomes.append(bench.outcome(answer in lab.culprits))
        if len(outcomes) == len(CONFIDENCES) or bench.runs >= most or not np.isfinite(top):
            break
        index = bisector.select()
        if not bench.visit(line[index]):
            bisector.record(index, None)
            if bisector.prior_weights.sum() == 0 or index in skipped:
                break  # it would ask for the same untestable commit for ever
            skipped.add(index)
            continue
        bisector.record(index, (bench.run() > bench.middle) == bench.high)
    outcomes += [bench.outcome(False)] * (len(CONFIDENCES) - len(outcomes))
    return outcomes


def git_bisect(lab: SyntheticLab) -> list[Outcome]:
    """Run `git bisect` with the mean of k runs against the midpoint, for every k."""
    masks = ancestor_masks(lab.graph)
    return [_git_bisect(lab, masks, k) for k in RUNS_A_STEP]


def _git_bisect(lab: SyntheticLab, masks: list[int], k: int) -> Outcome:
    bench = Bench(lab)
    left = masks[lab.graph.bad] & sum(1 << i for i, c in enumerate(lab.graph.candidate) if c)
    skipped = 0
    linear = all(len(p) <= 1 for p in lab.graph.parents)
    while left & (left - 1):
        commit = _middle(left, skipped, masks, linear)
        if commit is None or commit == lab.graph.bad:
            break
        if not bench.visit(commit):
            skipped |= 1 << commit
            continue
        mean = sum(bench.run() for _ in range(k)) / k
        left &= masks[commit] if (mean > bench.middle) == bench.high else ~masks[commit]
    # what is left beside skipped commits is one commit, or git says 'the first bad commit could be any of'
    alone = left & (left - 1) == 0
    return bench.outcome(alone and left != 0 and (left.bit_length() - 1) in lab.culprits)


def _middle(left: int, skipped: int, masks: list[int], linear: bool) -> int | None:
    """Return the commit that splits best, as `git bisect` weighs it: min(ancestors, rest)."""
    nodes = _bits(left)
    size = len(nodes)
    if linear:
        order = sorted(range(size), key=lambda i: abs(2 * (i + 1) - size))
        return next((nodes[i] for i in order if not skipped >> nodes[i] & 1 and i + 1 < size), None)
    score, best = 0, None
    for node in nodes:
        if skipped >> node & 1:
            continue
        above = (masks[node] & left).bit_count()
        if min(above, size - above) > score:
            score, best = min(above, size - above), node
    return best


def _bits(mask: int) -> list[int]:
    text = bin(mask)[:1:-1]
    return [i for i, c in enumerate(text) if c == "1"]


def ancestor_masks(graph: CommitGraph) -> list[int]:
    """Return for every commit its ancestors and itself, as a bit set."""
    masks: list[int] = []
    for i, parents in enumerate(graph.parents):
        mask = 1 << i
        for p in parents:
            mask |= masks[p]
        masks.append(mask)
    return masks
