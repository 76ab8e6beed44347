"""Searches among the noise of real programs, beside an oracle that knows this noise.

    python -m tests.bench.search.real_noise [--trials N] [--only CELL]... [--minutes N] [--keep]

Each cell is one pool (`pools/README.md`): a start of a program stands for a boot, its runs for the boot's
runs. 256 commits in a line hold one culprit; its effect is a multiple of the deviation of starts, that is of
the means of their runs. The threshold is half of it, and a search may cost 4,000 (build 20, boot 5, run 1).
Trials go round-robin over the cells and are kept in build/bench-search/rows.jsonl as they end.
"""

from __future__ import annotations

import functools
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bisector.model.goal import Budget
from bisector.simulation.batch import simulate_one
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.summary import share
from tests.bench.search import kept, measured, trials
from tests.bench.search.pool_oracle import Floats, PoolLikelihood, VisitInformation, pool_oracle

FOLDER = Path(__file__).parent / "pools"
COMMITS, BUDGET = 256, 4000.0
EFFECTS = (2.0, 1.0)
MAX_DEVIATION = 25.0
"""Deviation of starts, in percent, up to which a pool makes cells: an effect beyond is no small change."""
CLOCKS = ("wall", "processor")
BENCH, TRIALS, SEED = "recorded noise", 20, 1
PARTS = ("verify", "search", "certify", "attribute")
CODE = (
    *measured.PLANNER,
    *measured.SIMULATION,
    "tests/bench/search/pool_oracle.py",
    "tests/bench/search/real_noise.py",
)
ABOUT = """`real_noise`: searches of 256 commits among the recorded noise of real programs, with at most 4,000
of cost ([pools](pools/README.md)). The effect is a multiple of the deviation of starts, which stand for
boots; the threshold is half of it. *Of which*: verify, search, certify, attribute. The *oracle* only
searches, and knows pool, levels and effect; for *equal duties* it pays our verification and certificate."""


@functools.cache
def pools() -> dict[str, Floats]:
    """Return all pools by name: (starts, runs), in percent about the common mean, or about the level then."""
    found: dict[str, Floats] = {}
    for path in sorted(FOLDER.glob("*.npz")):
        data = np.load(path)
        names = data["names"].tolist()
        if "percent" in data:  # of a published CI, which has one clock
            found |= {f"{name} {path.stem}": of for name, of in zip(names, data["percent"], strict=True)}
            continue
        for name, times in zip(names, data["nanoseconds"], strict=True):
            for clock, of in zip(CLOCKS, np.moveaxis(times.astype(float), -1, 0), strict=True):
                found[f"{name} {clock} {path.stem}"] = (of / of.mean() - 1) * 100
    return found


def deviations(pool: Floats) -> tuple[float, float]:
    """Return the deviation of starts, of the means of their runs, and that of runs within a start."""
    within = float(np.sqrt(((pool - pool.mean(axis=1, keepdims=True)) ** 2).sum() / (pool.size - len(pool))))
    return float(pool.mean(axis=1).std(ddof=1)), within


@functools.cache
def scenarios() -> Mapping[str, Scenario]:
    """Return a cell for each pool and effect, by '<pool> effect <multiple>'."""
    usable = [name for name, pool in pools().items() if deviations(pool)[0] <= MAX_DEVIATION]
    return {f"{name} effect {of:g}": _scenario(name, of) for of in EFFECTS for name in usable}


def _scenario(name: str, multiple: float) -> Scenario:
    """Return the cell of a pool. multiple: the effect over the deviation of starts."""
    pool = pools()[name]
    effect = multiple * deviations(pool)[0]
    samples = tuple(tuple(100 + x for x in row) for row in pool.tolist())
    lab = LabModel(samples=samples, build_seconds=20, boot_seconds=5, run_seconds=1)
    budget = Budget(seconds=BUDGET)
    return Scenario(COMMITS, culprits=(Culprit(effect),), threshold=effect / 2, lab=lab, budget=budget)


@functools.cache
def _oracle(name: str) -> tuple[PoolLikelihood, VisitInformation]:
    likelihood = PoolLikelihood(pools()[_pool_of(name)])
    effect = scenarios()[name].culprits[0].effect
    return likelihood, VisitInformation(likelihood, effect, np.random.default_rng(7))


def _pool_of(cell: str) -> str:
    return cell.rpartition(" effect ")[0]


def search(name: str, seed: int) -> measured.Row:
    """Return what our search of a cell came to and cost, and what the oracle's did."""
    scenario = scenarios()[name]
    ours = simulate_one(scenario, seed)
    effect = scenario.culprits[0].effect
    oracle = pool_oracle(scenario.draw(seed)[1], *_oracle(name), effect)
    return {
        "right": ours.right,
        "wrong": ours.claim_wrong,
        "cost": ours.spent.cost,
        "parts": {part: of.cost for part, of in ours.parts.items()},
        "oracle": asdict(oracle),
    }


def _source_of(cell: str) -> str:
    pool, _, multiple = cell.rpartition(" effect ")
    *_, clock, source = pool.split()
    return f"{source}{f', {clock} clock' if clock in CLOCKS else ''}, effect {multiple}"


def lines_of(rows: Sequence[measured.Row]) -> list[kept.Line]:
    """Return what is kept: a line for each source, clock and effect, and below them one for each cell."""
    groups: dict[str, list[measured.Row]] = defaultdict(list)
    for row in rows:
        groups[f"all of {_source_of(row['cell'])}"].append(row)
    for name in scenarios():
        groups[name] = [row for row in rows if row["cell"] == name]
    found = [_line(name, of) for name, of in groups.items() if of]
    return [line | {"place": place} for place, line in enumerate(found)]


def _line(name: str, rows: Sequence[measured.Row]) -> kept.Line:
    right = share(sum(row["right"] for row in rows), len(rows))
    ours = float(np.mean([row["cost"] for row in rows]))
    theirs = float(np.mean([row["oracle"]["cost"] for row in rows]))
    spent = {part: float(np.mean([row["parts"].get(part, 0.0) for row in rows])) for part in PARTS}
    duties = theirs + spent["verify"] + spent["certify"]
    shown = {
        "right": f"{right.count} of {right.of}",
        "95% interval": f"{right.low:.0%} .. {right.high:.0%}",
        "wrong claims": str(sum(row["wrong"] for row in rows)),
        "cost": f"{ours:.0f}",
        "of which": " / ".join(f"{cost:.0f}" for cost in spent.values()),
        "oracle": f"{theirs:.0f}",
        "ratio": f"{ours / theirs:.2f}",
        "equal duties": f"{ours / duties:.2f}",
    }
    if name in scenarios():
        start, run = deviations(pools()[_pool_of(name)])
        shown["starts / runs"] = f"{start:.2g}% / {run:.2g}%"
    return {"bench": BENCH, "cell": name, "at": rows[0]["at"], "about": ABOUT, "shown": shown}


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is missing; print a row for each cell."""
    options = trials.options_of(__doc__, TRIALS).parse_args(words)
    return trials.run(trials.Bench(BENCH, scenarios(), search, CODE, SEED), lines_of, options)


if __name__ == "__main__":
    sys.exit(main())
