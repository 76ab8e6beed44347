"""How often the intervals of the total and of the culprit hold the truth, and how wide they are.

    python -m tests.bench.search.intervals [TRIALS [CELL ...]]

Histories of one commit, so that a search is its two comparisons: the ends, then the culprit and its parent.
Effects are 2%, the threshold is 1%, nominal coverage is 95%. Modes have a budget of 2,000 runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scipy.stats import binomtest

from bisector.model.decisions import Interval
from bisector.search.planner import Planner
from bisector.simulation.batch import derive_seeds
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.bench.search.grid import EFFECT, cells, scenario

TRIALS, SEED = 60, 5


@dataclass
class Coverage:
    """Intervals of one kind, and how many of them held the truth. width: sum, in percent."""

    held: int = 0
    of: int = 0
    width: float = 0.0

    def add(self, interval: Interval, truth: float) -> None:
        self.held += interval.low <= truth <= interval.high
        self.of += 1
        self.width += 100 * (interval.high - interval.low)

    def __str__(self) -> str:
        if not self.of:
            return "none | |"
        low, high = binomtest(self.held, self.of).proportion_ci(method="exact")
        return f"{self.held} of {self.of} | {low:.0%} .. {high:.0%} | {self.width / self.of:.2f}%"


def scenarios() -> Mapping[str, Scenario]:
    """Return the cells, each with one commit."""
    found = {f"d = {d:g}": scenario(n=1, d=d) for d in (2.0, 1.0, 0.5)}
    found |= {kind: scenario(n=1, lab={"noise": kind}) for kind in ("t3", "ar1")}
    for part in (0.5, 1.0, 2.0):
        found[f"boots scatter by {part:g} effects"] = scenario(n=1, lab={"boot_noise": part * EFFECT})
    modes = [c for c in cells() if c.factor == "modes of boots" and "no culprit" not in c.value]
    return found | {c.name: replace(c.scenario, commits=1) for c in modes}


def measure(cell: Scenario, trials: int) -> tuple[Coverage, Coverage]:
    """Return the coverage of the total and that of the culprit's step."""
    total, step = Coverage(), Coverage()
    for seed in derive_seeds(trials, SEED):
        found = simulate_bisection(cell, seed, Planner())
        truth = sum(found.lab.culprits.values()) / 100
        if found.conclusion.total is not None:
            total.add(found.conclusion.total, truth)
        for finding in found.conclusion.large:
            if finding.certified:
                step.add(finding.effect, truth)
    return total, step


def main(arguments: list[str]) -> int:
    """Print a row for each cell."""
    trials = int(arguments[0]) if arguments else TRIALS
    print("| cell | total held | 95% interval | width | culprit held | 95% interval | width |")
    print("|---|---|---|---|---|---|---|")
    found = scenarios()
    for name in arguments[1:] or found:
        total, step = measure(found[name], trials)
        print(f"| {name} | {total} | {step} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
