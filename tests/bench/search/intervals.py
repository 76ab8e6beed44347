"""How often the intervals of the total and of the culprit hold the truth, and how wide they are.

    python -m tests.bench.search.intervals [--trials N] [--only CELL]... [--minutes N] [--keep]

Histories of one commit, so that a search is its two comparisons: the ends, then the culprit and its parent.
Effects are 2%, the threshold is 1%, nominal coverage is 95%. Modes have a budget of 2,000 runs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bisector.model.decisions import Interval
from bisector.search.planner import Planner
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from bisector.simulation.summary import share
from tests.bench.search import kept, measured, trials
from tests.bench.search.grid import EFFECT, cells, scenario

BENCH, TRIALS, SEED = "intervals", 60, 5
KINDS = ("total", "culprit")
AIMED = 0.93
"""Coverage that is aimed at where 95% is nominal: the data choose when a search ends."""
ABOUT = """`intervals`: how often 95% intervals hold the truth at an end that the data chose, and their mean
width, in histories of one commit. *Total*: of what both ends differ by. *Culprit*: of what the proven commit
takes. The effect is 2%, the threshold 1%; 93% are aimed at."""


@functools.cache
def scenarios() -> Mapping[str, Scenario]:
    """Return the cells, each with one commit."""
    found = {f"d = {d:g}": scenario(n=1, d=d) for d in (2.0, 1.0, 0.5)}
    found |= {kind: scenario(n=1, lab={"noise": kind}) for kind in ("t3", "ar1")}
    for part in (0.5, 1.0, 2.0):
        found[f"boots scatter by {part:g} effects"] = scenario(n=1, lab={"boot_noise": part * EFFECT})
    modes = [c for c in cells() if c.factor == "modes of boots" and "no culprit" not in c.value]
    return found | {c.name: replace(c.scenario, commits=1) for c in modes}


def search(name: str, seed: int) -> measured.Row:
    """Return for each kind whether the interval held the truth, and its width in percent; None for none."""
    found = simulate_bisection(scenarios()[name], seed, Planner())
    truth = sum(found.lab.culprits.values()) / 100
    proven = [f.effect for f in found.conclusion.large if f.certified]
    culprit = proven[0] if proven else None
    return {"total": _judged(found.conclusion.total, truth), "culprit": _judged(culprit, truth)}


def _judged(interval: Interval | None, truth: float) -> tuple[bool, float] | None:
    if interval is None:
        return None
    return interval.low <= truth <= interval.high, 100 * (interval.high - interval.low)


def lines_of(rows: Sequence[measured.Row]) -> list[kept.Line]:
    """Return what is kept: a line for each cell, and one for all."""
    found = [_line(name, [row for row in rows if row["cell"] == name]) for name in scenarios()]
    return [
        line | {"place": place}
        for place, line in enumerate([*(line for line in found if line), _line("all", rows)])
    ]


def _line(name: str, rows: Sequence[measured.Row]) -> kept.Line:
    if not rows:
        return {}
    shown: dict[str, str] = {}
    for kind in KINDS:
        texts = _count([row[kind] for row in rows if row[kind] is not None])
        shown |= dict(zip((f"{kind} held", f"{kind}, 95%", f"{kind}, width"), texts, strict=True))
    return {"bench": BENCH, "cell": name, "at": rows[0]["at"], "about": ABOUT, "shown": shown}


def _count(judged: Sequence[tuple[bool, float]]) -> tuple[str, str, str]:
    if not judged:
        return "none", "", ""
    held = share(sum(held for held, _ in judged), len(judged))
    verdict = "" if held.high >= AIMED else ", **too few**"
    width = float(np.mean([width for _, width in judged]))
    return f"{held.count} of {held.of}", f"{held.low:.0%} .. {held.high:.0%}{verdict}", f"{width:.2f}%"


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is missing; print a row for each cell."""
    options = trials.options_of(__doc__, TRIALS).parse_args(words)
    code = (*measured.PLANNER, *measured.SIMULATION, "tests/bench/search/intervals.py")
    return trials.run(trials.Bench(BENCH, scenarios(), search, code, SEED), lines_of, options)


if __name__ == "__main__":
    sys.exit(main())
