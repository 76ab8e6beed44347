"""A few runs of one boot, summed up: level, spread, runs far off, and what so many runs can show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bisector.model.goal import Metric
from bisector.stats import outliers
from bisector.stats.variance_components import smallest_effect

DEFAULT_ALPHA = 0.05
"""Chance of a difference where there is none, as in `compare` and `start` by default."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One metric over some runs of one boot, in its unit.

    sd: standard deviation between runs, None for a single one; far: runs far off, counted from 1;
    threshold: in the metric's unit; shown: the smallest difference that so many runs a side show with power
    95%; needed: runs a side that show the threshold. What boots differ by is in neither: it needs boots.
    """

    metric: Metric
    runs: int
    mean: float
    low: float
    high: float
    sd: float | None
    far: tuple[int, ...]
    threshold: float
    shown: float | None
    needed: int | None


def sum_up(metric: Metric, values: Sequence[float]) -> RunSummary:
    """Sum up the runs of one boot. values: one a run, at least one."""
    mean = statistics.fmean(values)
    wanted = metric.threshold.value * (abs(mean) if metric.threshold.relative else 1.0)
    sd = statistics.stdev(values) if len(values) > 1 else None
    known = sd is not None and wanted > 0
    return RunSummary(
        metric=metric,
        runs=len(values),
        mean=mean,
        low=min(values),
        high=max(values),
        sd=sd,
        far=tuple(one.run for one in outliers.find([values])),
        threshold=wanted,
        shown=smallest_effect(sd, 0.0, 1, len(values), DEFAULT_ALPHA) if sd is not None else None,
        needed=runs_needed(sd, wanted) if known and sd is not None else None,
    )


def runs_needed(sd: float, difference: float) -> int:
    """Return the runs a side that show a difference with power 95%: `smallest_effect`, solved for runs.

    sd: between runs, in the unit of the difference. At least two: one run has no spread.
    """
    return max(2, math.ceil((smallest_effect(sd, 0.0, 1, 1, DEFAULT_ALPHA) / difference) ** 2))
