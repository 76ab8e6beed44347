"""How often suspects and culprits of a stated probability are right, over searches of mixed difficulty.

    python -m tests.bench.search.calibration [--trials N] [--only CELL]... [--minutes N] [--keep]

Three statements are counted, each by the probability that it comes with. *Proven*: a proven culprit. *Named*:
the commits that a report names when the first fresh boots of a suspect are asked for, right where one of them
is a culprit. *Suspected*: this suspect by itself, as the decision states it. 'As stated' is the mean of the
stated probabilities; a bin is right where that lies in the interval.

Searches go round-robin over the cells and are kept in build/bench-search/rows.jsonl as they end.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from bisector.model.decisions import Answer, Measure
from bisector.model.goal import Budget
from bisector.model.state import State
from bisector.search.planner import Planner
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from bisector.simulation.summary import Share, share
from tests.bench.search import kept, measured, trials
from tests.bench.search.grid import EFFECT, cells, scenario

BENCH = "calibration"
SEARCHES, SEED = 100, 7003
"""Other searches than those of 7001 and 7002, by which `suspect_probability` was made."""
BUDGET = Budget(runs=3000)
BINS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
KINDS = ("proven", "named", "suspected")
ABOUT = """`calibration`: how often statements of a probability are right, over searches of mixed difficulty
(24 cells of 32 to 1,024 commits: quiet ones, runs, boots and binaries that scatter, tails, modes, outliers,
background, two culprits, a small budget). *Proven*: culprits. *Named*: the commits that a report names when
fresh boots of a suspect are first asked for. *Suspected*: that suspect, as the decision states it."""

Stated = list[tuple[float, bool]]
"""Stated probabilities, and whether the commit is a culprit, or one of the commits."""


@dataclass
class Witness:
    """The planner, and what was stated of each suspect when fresh boots of it were first asked for.

    suspected: its probability; named: the commits that a report would name then, with theirs.
    """

    planner: Planner = field(default_factory=Planner)
    suspected: dict[int, float] = field(default_factory=dict)
    named: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)

    def next(self, state: State) -> Answer:
        """Return the planner's decision."""
        decision = self.planner.next(state)
        if isinstance(decision, Measure) and decision.purpose == "certify" and decision.suspects:
            suspect, probability = decision.suspects[0]
            if suspect == decision.commit and suspect not in self.suspected:
                self.suspected[suspect] = probability
                open_ones = [f for f in self.planner.so_far(state).findings if not f.certified]
                self.named += [(f.probability, f.commits) for f in open_ones if f.probability is not None]
        return decision


@functools.cache
def scenarios() -> Mapping[str, Scenario]:
    """Return the cells: 128 commits where nothing else is said, easy ones and such where models fail."""

    def cell(n: int = 128, d: float = 1.0, **lab: object) -> Scenario:
        return scenario(n=n, d=d, lab=lab, budget=BUDGET)

    found = {f"d = {d:g}": cell(d=d) for d in (100.0, 4.0, 2.0, 1.0, 0.7)} | {"d = 1, n = 1024": cell(1024)}
    found |= {k: cell(noise=k) for k in ("t3", "lognormal", "bimodal", "ar1", "outliers")}
    found["boots scatter by .5 effects"] = cell(boot_noise=0.5 * EFFECT)
    found["boots scatter by 1, n = 32"] = cell(32, boot_noise=EFFECT)
    for part in (0.25, 0.5):
        found[f"binaries scatter by {part:g}"] = cell(build_noise=part * EFFECT)
    for part in (0.5, 1.0):
        found[f"background of {part:g}"] = cell(background=part * EFFECT)
    modes = [c for c in cells() if c.factor == "modes of boots" and "no culprit" not in c.value]
    found |= {c.name: c.scenario for c in modes}
    found["two culprits"] = scenario(n=128, culprits=(Culprit(EFFECT),) * 2, budget=BUDGET)
    found["d = 1, 150 runs"] = replace(cell(), budget=Budget(runs=150))
    return found


def search(name: str, seed: int) -> measured.Row:
    """Return what one search stated, by kind."""
    witness = Witness()
    found = simulate_bisection(scenarios()[name], seed, witness)
    truth = found.lab.culprits.keys()

    def right(commits: Sequence[int]) -> bool:
        return not truth.isdisjoint(commits)

    proven = [f for f in found.conclusion.large if f.certified and f.probability is not None]
    return {
        "proven": [(f.probability, right(f.commits)) for f in proven],
        "named": [(p, right(commits)) for p, commits in witness.named],
        "suspected": [(p, right((commit,))) for commit, p in witness.suspected.items()],
    }


def lines_of(rows: Sequence[measured.Row]) -> list[kept.Line]:
    """Return what is kept: a line for each kind and bin; an empty one, too, so that no older one stays."""
    found: list[kept.Line] = []
    for kind in KINDS:
        stated: Stated = [(p, bool(true)) for row in rows for p, true in row[kind]]
        for low, high in pairwise(BINS):
            inside = [x for x in stated if low <= x[0] < high or x[0] == high == 1.0]
            count = share(sum(true for _, true in inside), len(inside)) if inside else None
            mean = float(np.mean([p for p, _ in inside])) if inside else math.nan
            found.append(
                {
                    "bench": BENCH,
                    "cell": f"{kind}, {low:g} to {high:g}",
                    "place": len(found),
                    "at": rows[0]["at"],
                    "about": ABOUT,
                    "shown": {
                        "searches": str(len(rows)),
                        "true": f"{count.count} of {count.of}" if count else "none",
                        "95% interval": f"{count.low:.1%} .. {count.high:.1%}" if count else "",
                        "as stated": f"{mean:.1%}" if count else "",
                        "it is": _verdict(count, mean) if count else "",
                    },
                }
            )
    return found


def _verdict(true: Share, stated: float) -> str:
    if stated > true.high:
        return "**too sure**"
    return "right" if stated >= true.low else "careful"


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is missing; print a row for each bin."""
    options = trials.options_of(__doc__, SEARCHES).parse_args(words)
    code = (*measured.PLANNER, *measured.SIMULATION, "tests/bench/search/calibration.py")
    return trials.run(trials.Bench(BENCH, scenarios(), search, code, SEED), lines_of, options)


if __name__ == "__main__":
    sys.exit(main())
