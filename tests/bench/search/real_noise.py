"""Searches among the noise of real programs, beside an oracle that knows this noise.

    python -m tests.bench.search.real_noise [--trials N] [--effects 1,2] [--seed S] [NAME ...]

Each cell is one pool (`pools/README.md`): a start of a program stands for a boot, its runs for the boot's
runs. 256 commits in a line hold one culprit; its effect is a multiple of the deviation of starts, that is of
the means of their runs. The threshold is half of it, and a search may cost 4,000 (build 20, boot 5, run 1).
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bisector.model.goal import Budget
from bisector.simulation.batch import derive_seeds, simulate_one
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from tests.bench.search.grid import Cell
from tests.bench.search.pool_oracle import Floats, PoolLikelihood, VisitInformation, pool_oracle
from tests.bench.search.rivals import Outcome

FOLDER = Path(__file__).parent / "pools"
COMMITS, BUDGET = 256, 4000.0
EFFECTS = (2.0, 1.0)
MAX_DEVIATION = 25.0
"""Deviation of starts, in percent, up to which a pool makes cells: an effect beyond is no small change."""
CLOCKS = ("wall", "processor")


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


def cell(name: str, multiple: float) -> Cell:
    """Return the cell of a pool. multiple: the effect over the deviation of starts; 0 for no culprit."""
    pool = pools()[name]
    effect = multiple * deviations(pool)[0]
    samples = tuple(tuple(100 + x for x in row) for row in pool.tolist())
    lab = LabModel(samples=samples, build_seconds=20, boot_seconds=5, run_seconds=1)
    threshold = (effect or deviations(pool)[0]) / 2
    scenario = Scenario(
        COMMITS,
        culprits=(Culprit(effect),),
        threshold=threshold,
        lab=lab,
        budget=Budget(seconds=BUDGET),
    )
    value = f"{name} effect {multiple:g} start sd" if multiple else f"{name} no culprit"
    return Cell("real", value, scenario, "none", 0.2)


def cells(effects: Sequence[float] = EFFECTS) -> list[Cell]:
    """Return a cell for each pool and effect."""
    usable = [name for name, pool in pools().items() if deviations(pool)[0] <= MAX_DEVIATION]
    return [cell(name, multiple) for name in usable for multiple in effects]


def oracle_outcomes(name: str, multiple: float, seeds: Sequence[int]) -> list[Outcome]:
    """Return what the oracle did with these seeds."""
    scenario = cell(name, multiple).scenario
    effect = scenario.culprits[0].effect
    likelihood = PoolLikelihood(pools()[name])
    information = VisitInformation(likelihood, effect, np.random.default_rng(7))
    return [pool_oracle(scenario.draw(s)[1], likelihood, information, effect) for s in seeds]


def row(name: str, multiple: float, trials: int, seed: int) -> str:
    """Search one cell with both, and return a row of the table."""
    seeds = derive_seeds(trials, seed)
    ours = [simulate_one(cell(name, multiple).scenario, s) for s in seeds]
    start, run = deviations(pools()[name])
    right, wrong = sum(j.right for j in ours), sum(j.claim_wrong for j in ours)
    cost = float(np.mean([j.spent.cost for j in ours]))
    parts = {p: sum(j.parts[p].cost for j in ours if p in j.parts) / trials for j in ours for p in j.parts}
    spent = " / ".join(f"{value:.0f}" for value in parts.values())
    label = f"| {name} | {start:.2g}% / {run:.2g}% | {multiple:g} | {right} of {trials} | {wrong} "
    if not multiple:
        return f"{label}| {cost:.0f} ({spent}) | | |"
    oracle = oracle_outcomes(name, multiple, seeds)
    theirs = float(np.mean([o.cost for o in oracle]))
    known = f"{theirs:.0f}, {sum(o.correct for o in oracle)}"
    return f"{label}| {cost:.0f} ({spent}) | {known} | {cost / theirs:.2f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--effects", default="2,1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", help="text that a pool's name contains")
    options = parser.parse_args()
    print("| pool | starts / runs | effect | right | wrong | cost | oracle, right | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for name, pool in pools().items():
        if deviations(pool)[0] > MAX_DEVIATION or not any(t in name for t in options.names or [""]):
            continue
        for multiple in options.effects.split(","):
            print(row(name, float(multiple), options.trials, options.seed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
