"""Metrics that move in steps: how large a step is, and what of it the mean of many runs still hides.

A clock that ticks, a rounded number or a count of few events reads one of a few values. Runs that scatter by
more than a step read several of them, and their mean tells what lies between two (dither). Runs that scatter
by less read the same value again and again, and no number of them tells more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np

from bisector.model.dag import Floats
from bisector.model.state import State
from bisector.search.metric.scale import Scale

MIN_REPEATED_RUNS = 3
"""Runs that read the same as an earlier one of their binary, from which a metric has steps or is constant. Of
values that do not come in steps not even two are equal."""
MIN_GAP_PER_VALUE = 1e-12
"""Smaller differences, relative to the value, are those of rounding a sum or a quotient."""
MIN_TOLD_STEP = 0.5
"""Steps are told from this share of the threshold on: a change of the threshold then moves two of them."""
HARMONICS = np.arange(1, 65)
"""Terms of the series below; all of them together are pi^2 / 6, and these are 1% less."""
VARIANCE_HALVINGS = 30
"""Halvings that find the variance before rounding."""


@dataclass(frozen=True, slots=True)
class MetricStep:
    """The step of a metric, in worse units.

    size: the smallest difference of two readings that were seen, the last digit where all are equal; hidden:
    standard deviation of a binary's level that no number of runs averages away; varies: of what readings
    differ: runs of one binary, only binaries, or none. Where runs do not, it is not known whether the metric
    has steps, or repeats: what is said assumes that it has.
    """

    size: float
    hidden: float
    varies: Literal["runs", "binaries", "nothing"]


def metric_step(state: State, scale: Scale) -> MetricStep | None:
    """Return the step of the metric; None where it has none, and under an exact clock, whose runs repeat."""
    if state.goal.exact:
        return None
    cells: dict[tuple[int, int, str], list[float]] = {}
    for v in state.visits:
        finite = [y for _, y in v.samples if math.isfinite(y)]
        cells.setdefault((v.commit, v.layout, v.testbed), []).extend(finite)
    if sum(len(cell) - len(set(cell)) for cell in cells.values()) < MIN_REPEATED_RUNS:
        return None
    values = [np.array(cell) for cell in cells.values() if cell]
    distinct = np.unique(np.concatenate(values))
    gap = np.diff(distinct) > MIN_GAP_PER_VALUE * np.abs(distinct[1:])
    if not gap.any():
        level = float(np.abs(distinct).max())
        pair = np.array([level, level + _last_digit(level)])
        size = float(np.abs(np.diff(scale.to_worse_units(pair)))[0])
        return MetricStep(size, hidden_by_rounding(size, 0.0), "nothing")
    size = float(np.abs(np.diff(scale.to_worse_units(distinct)))[gap].min())
    worse = [scale.to_worse_units(cell) for cell in values]
    freedom = sum(len(cell) - 1 for cell in worse)
    variance = sum(float(((cell - cell.mean()) ** 2).sum()) for cell in worse) / freedom
    among_runs = any(float(np.ptp(cell)) >= 0.5 * size for cell in worse)
    return MetricStep(size, hidden_by_rounding(size, variance), "runs" if among_runs else "binaries")


def _last_digit(value: float) -> float:
    """Return the power of ten that the last digit of a number stands for, if its zeros are not digits."""
    return (
        float(Decimal(1).scaleb(int(Decimal(repr(value)).normalize().as_tuple().exponent))) if value else 0.0
    )


def hidden_by_rounding(step: float, variance: float) -> float:
    """Return the standard deviation of a level that rounding to steps hides, however many runs are averaged.

    variance: of what was read. The error of a mean depends on where between two steps the level lies, which
    nobody knows. Over all places its mean square is the sum over k of (step / pi k)^2 / 2 times exp(-4 pi^2
    k^2 v / step^2), where v is the variance before rounding: step^2 / 12 without noise, and nothing where
    runs scatter by half a step (Widrow and Kollar 2008). Rounding adds step^2 / 12 to v (Sheppard 1898), of
    which what it hides is not seen: it is the same in all runs.
    """
    if not step:
        return 0.0
    low, high = 0.0, variance / step**2
    for _ in range(VARIANCE_HALVINGS):
        before = (low + high) / 2
        seen = before + 1 / 12 - _hidden_square(before)
        low, high = (before, high) if seen < variance / step**2 else (low, before)
    return step * math.sqrt(_hidden_square(low))


def _hidden_square(variance: float) -> float:
    """Return the mean square of what rounding hides; all in steps."""
    parts: Floats = np.exp(-4 * math.pi**2 * variance * HARMONICS**2) / (math.pi * HARMONICS) ** 2
    return float(parts.sum()) / 2


def in_words(step: MetricStep | None, scale: Scale) -> str:
    """Return what people should know of the steps of their metric; '' if they are small or there are none."""
    if step is None or step.size < MIN_TOLD_STEP * scale.threshold:
        return ""
    size = f"{100 * abs(scale.to_relative_change(step.size, step.size, step.size).estimate):.3g}%"
    than = "more than the threshold" if step.size >= scale.threshold else "nearly the threshold"
    if step.varies == "nothing":
        return f"every run read the same number: if its last digit is rounded, less than {size} does not show"
    if step.varies == "binaries":
        return (
            "runs of one kernel read the same number, those of different ones differ by "
            f"{size} or more, {than}: if the metric is rounded, less does not show"
        )
    less = "less does not show" if step.hidden > step.size / 10 else "only the mean of many runs tells less"
    return f"the metric moves in steps of {size}, {than}: {less}"
