"""How often suspects and culprits of a stated probability are right, over searches of mixed difficulty.

    python -m tests.bench.search.calibration [SEARCHES_A_CELL [SEED [CELL ...]]]

One search is counted in two ways: each suspect by the model's probability when its first fresh boots are
asked for, and each proven culprit by the confidence of its finding. 'As stated' is the share that the mean of
the stated probabilities predicts; a bin is right where it lies in the interval.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.stats import binomtest

from bisector.model.decisions import Answer, Measure
from bisector.model.goal import Budget
from bisector.model.state import State
from bisector.search.planner import Planner
from bisector.simulation.batch import derive_seeds
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.bench.search.grid import EFFECT, cells, scenario

SEARCHES, SEED = 20, 31
BUDGET = Budget(runs=3000)
BINS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)

Stated = tuple[float, bool]
"""A stated probability, and whether the commit is a culprit."""


@dataclass
class Witness:
    """The planner, and the probability of each commit when fresh boots of it were first asked for."""

    planner: Planner = field(default_factory=Planner)
    suspected: dict[int, float] = field(default_factory=dict)

    def next(self, state: State) -> Answer:
        """Return the planner's decision."""
        decision = self.planner.next(state)
        if isinstance(decision, Measure) and decision.purpose == "certify" and decision.suspects:
            suspect, probability = decision.suspects[0]
            if suspect == decision.commit:
                self.suspected.setdefault(suspect, probability)
        return decision


def scenarios() -> Mapping[str, Scenario]:
    """Return the cells: 128 commits where nothing else is said, easy ones and such where models fail."""

    def cell(n: int = 128, d: float = 1.0, **lab: object) -> Scenario:
        return scenario(n=n, d=d, lab=lab, budget=BUDGET)

    found = {f"d = {d:g}": cell(d=d) for d in (2.0, 1.0, 0.7)} | {"d = 1, n = 1024": cell(1024)}
    found |= {k: cell(noise=k) for k in ("t3", "lognormal", "bimodal", "ar1", "outliers")}
    found["boots scatter by .5 effects"] = cell(boot_noise=0.5 * EFFECT)
    found["boots scatter by 1, n = 32"] = cell(32, boot_noise=EFFECT)
    found["binaries scatter by .25"] = cell(build_noise=0.25 * EFFECT)
    found["background of .5"] = cell(background=0.5 * EFFECT)
    modes = [c for c in cells() if c.factor == "modes of boots" and "no culprit" not in c.value]
    return found | {c.name: c.scenario for c in modes}


def measure(scenario: Scenario, seeds: Iterable[int]) -> tuple[list[Stated], list[Stated]]:
    """Return what was stated of suspects, and of proven culprits."""
    suspects: list[Stated] = []
    culprits: list[Stated] = []
    for seed in seeds:
        witness = Witness()
        found = simulate_bisection(scenario, seed, witness)
        truth = found.lab.culprits
        suspects += [(p, commit in truth) for commit, p in witness.suspected.items()]
        proven = [f for f in found.conclusion.culprits if f.certified]
        culprits += [(f.confidence, not truth.keys().isdisjoint(f.commits)) for f in proven]
    return suspects, culprits


def table(stated: Sequence[Stated]) -> str:
    """Return a row for each bin that is not empty."""
    rows = []
    for low, high in pairwise(BINS):
        inside = [x for x in stated if low <= x[0] < high or x[0] == high == 1.0]
        if not inside:
            continue
        right, of = sum(true for _, true in inside), len(inside)
        ends = binomtest(right, of).proportion_ci(method="exact")
        mean = float(np.mean([p for p, _ in inside]))
        rows.append(
            f"| {low:g} .. {high:g} | {right} of {of} | {ends.low:.1%} .. {ends.high:.1%} | {mean:.1%} |"
        )
    return "\n".join(["| stated | right | 95% interval | as stated |", "|---|---|---|---|", *rows])


def main(arguments: list[str]) -> int:
    """Print both tables after each cell, of all cells so far."""
    searches = int(arguments[0]) if arguments else SEARCHES
    seed = int(arguments[1]) if len(arguments) > 1 else SEED
    suspects: list[Stated] = []
    culprits: list[Stated] = []
    found = scenarios()
    for name in arguments[2:] or found:
        more = measure(found[name], derive_seeds(searches, seed))
        suspects += more[0]
        culprits += more[1]
        print(
            f"\n{name}, and before\n\nSuspects\n\n{table(suspects)}\n\nProven\n\n{table(culprits)}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
