"""Simulated nightly series, in percent of the level: what a testbed does to four boots and a reference boot.

The level of a night, the mean of its boots, has a standard deviation of 1% in every kind but those that say
otherwise: boots scatter by BOOT_SD, and the night adds a part of its own, which the reference does not share.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bisector.model.dag import CommitDag, Floats
from bisector.model.decisions import Measure
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted
from bisector.model.state import State, Visit
from bisector.search.series.suspect_test import Outcome, next_step
from bisector.simulation.histories import linear
from bisector.stats.variance_components import VarianceComponents

BOOTS, RUNS = 4, 3
RUN_SD, OWN_BOOT_SD = 1.0, 0.8
BOOT_SD = float(np.sqrt(OWN_BOOT_SD**2 + RUN_SD**2 / RUNS))
NIGHT_SD = float(np.sqrt(1.0 - BOOT_SD**2 / BOOTS))
KINDS = (
    "white",
    "3% outliers",
    "AR(0.5)",
    "drift shared",
    "drift not shared",
    "weekday",
    "20% missing",
    "noise doubles",
    "testbed moves",
)
WALK_SD = 0.2
"""Percent that a drifting testbed walks in a night: 3.8% in a year."""
OUTLIER_SHARE, OUTLIER = 0.03, 5.0
WEEKEND = -1.0
TESTBED_MOVES = 3.0
_GRAPH = linear(1)
_DAG = CommitDag(_GRAPH)


@dataclass(frozen=True, slots=True)
class Simulated:
    """boots (N, BOOTS), reference (N, 1): measured; level (N,): of the commit itself, which is the truth."""

    boots: Floats
    reference: Floats
    level: Floats


def draw(kind: str, nights: int, step: float, at: int, seed: int) -> Simulated:
    """Draw a series whose commits become `step` percent worse in night `at`.

    Noise doubles, and the testbed moves, in night `at` of a series without a step, else 20 nights before.
    """
    random = np.random.default_rng((seed, zlib.crc32(kind.encode())))
    event = at - 20 if step else at
    level = np.where(np.arange(nights) >= at, step, 0.0)
    own, other = NIGHT_SD * random.standard_normal((2, nights))
    if kind == "AR(0.5)":
        own, other = (_autocorrelated(x) for x in (own, other))
    if kind == "3% outliers":
        own += OUTLIER * (random.random(nights) < OUTLIER_SHARE)
    if kind == "weekday":
        own += np.where(np.arange(nights) % 7 >= 5, WEEKEND, 0.0)
    boots = own[:, None] + BOOT_SD * random.standard_normal((nights, BOOTS))
    reference = other[:, None] + BOOT_SD * random.standard_normal((nights, 1))
    if kind == "noise doubles":
        boots[event:] *= 2.0
        reference[event:] *= 2.0
    walk = np.cumsum(WALK_SD * random.standard_normal(nights))[:, None]
    if kind.startswith("drift"):
        boots += walk
    if kind == "drift shared":
        reference += walk
    if kind == "testbed moves":
        boots[event:] += TESTBED_MOVES
        reference[event:] += TESTBED_MOVES
    there = random.random(nights) >= 0.2 if kind == "20% missing" else np.ones(nights, dtype=bool)
    boots[~there] = np.nan
    reference[~there] = np.nan
    return Simulated(boots + level[:, None], reference, level)


def _autocorrelated(x: Floats) -> Floats:
    result = x.copy()
    for i in range(1, len(x)):
        result[i] = 0.5 * result[i - 1] + np.sqrt(0.75) * x[i]
    return result


def confirm(kind: str, effect: float, late: bool, seed: int) -> tuple[Outcome, int]:
    """Return the outcome of the real confirmation and its boots. effect: percent from last good to tip.

    Its boots have the noise of the kind: outliers, doubled noise (late), boots that follow one another with
    correlation 0.5, a testbed that walks by WALK_SD every ten boots. It is told the noise of the old nights.
    """
    random = np.random.default_rng((seed, 77, zlib.crc32(kind.encode())))
    double = 2.0 if kind == "noise doubles" and late else 1.0
    noise = VarianceComponents(RUN_SD / 100, 60.0 * BOOTS * (RUNS - 1), OWN_BOOT_SD / 100, 60.0 * (BOOTS - 1))
    last = walk = 0.0

    def draw_boot(commit: int) -> Floats:
        nonlocal last, walk
        z = random.standard_normal(RUNS + 2)
        last = 0.5 * last + np.sqrt(0.75) * z[0] if kind == "AR(0.5)" else z[0]
        walk += WALK_SD / np.sqrt(10.0) * z[1] if kind.startswith("drift") else 0.0
        place = effect * commit + double * OWN_BOOT_SD * last + walk
        if kind == "3% outliers":
            place += OUTLIER * (random.random() < OUTLIER_SHARE)
        runs: Floats = np.exp((place + double * RUN_SD * z[2:]) / 100)
        return runs

    return confirm_with(draw_boot, noise)


def confirm_with(boot: Callable[[int], Floats], noise: VarianceComponents) -> tuple[Outcome, int]:
    """Return the outcome of the real confirmation and its boots.

    boot: returns the runs (RUNS,) of a new boot of the last good commit, 0, or the tip, 1. noise: of the
    nights before.
    """
    goal = Goal(Metric("time", "s", "lower", Threshold(0.01)), max_runs_per_boot=RUNS)
    visits: list[Visit] = []
    while True:
        asked = next_step(State(_GRAPH, goal, visits=tuple(visits)), _DAG, noise)
        if not isinstance(asked, Measure):
            return asked.outcome, len(visits)
        # All runs of a boot are made at once, as a nightly boot does.
        values = boot(asked.commit).tolist()
        at = 60.0 * len(visits)
        booted = Booted(f"b{len(visits)}", asked.commit, "t", True, 5.0, at, purpose="verify")
        if visits:
            visits[-1] = replace(visits[-1], live=False)
        visits.append(Visit(booted, samples=tuple(enumerate(values)), at=(at,) * RUNS))
