"""The units that levels are compared in: logarithms, or amounts of the metric's unit, larger being worse."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bisector.model.dag import Floats
from bisector.model.decisions import Interval
from bisector.model.goal import Goal, Threshold

LEAST_THRESHOLD_PER_VALUE, LARGEST_THRESHOLD_PER_VALUE = 1e-8, 10.0
"""Thresholds beyond these count as these: what is asked for in percent cannot be smaller either, see
`parse_threshold`, and no two values differ by more than twice the largest one."""
UNIT_DECADES = 60
"""Values as large as 10^30 or as small as 10^-30 are divided by a power of 10^60: their fourth powers must
not overflow."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How values become worse units.

    threshold: in these; base: level that relative changes refer to, in these; unit: value of one of these,
    where they are no logarithms. of_one: that level is 0, and one of the metric's unit stands for it.
    """

    log: bool
    sign: float
    threshold: float
    base: float
    unit: float = 1.0
    of_one: bool = False

    def to_worse_units(self, values: Floats) -> Floats:
        """Turn values into worse units, of the same shape."""
        result: Floats = self.sign * (np.log(values) if self.log else values / self.unit)
        return result

    def of_threshold(self, threshold: Threshold) -> float:
        """Return a threshold in worse units, as it was asked for."""
        if self.log:
            return math.log1p(threshold.value)
        return threshold.value * self.base if threshold.relative else threshold.value / self.unit

    def to_relative_change(self, low: float, estimate: float, high: float) -> Interval:
        """Return a difference in worse units as a relative change of the metric itself."""

        def back(v: float) -> float:
            v *= self.sign
            return math.expm1(min(v, 50.0)) if self.log else v / self.base

        a, b = sorted((back(low), back(high)))
        return Interval(a, min(max(back(estimate), a), b), b)

    def around(self, estimate: float, sd: float) -> Interval:
        """Return the relative change for a difference in worse units, with limits of two sd."""
        return self.to_relative_change(estimate - 2 * sd, estimate, estimate + 2 * sd)


def has_logarithms(goal: Goal, values: Floats) -> bool:
    """Return whether these values may be compared by logarithms: a relative threshold, and all positive."""
    return goal.metric.threshold.relative and bool(len(values)) and bool(values.min() > 0)


def scale_of(goal: Goal, values: Floats, level: float, log: bool) -> Scale:
    """Choose the units of the metric. level: a typical value at the good end; log: whether by logarithms.

    Where a fix is looked for, what is better for people counts as worse. A threshold that no number could
    tell from zero, or that no change could reach, counts as the nearest one that makes sense.
    """
    threshold = goal.metric.threshold
    sign = goal.sought_sign
    if log:
        return Scale(True, sign, math.log1p(max(threshold.value, LEAST_THRESHOLD_PER_VALUE)), 1.0)
    base = abs(level) or 1.0
    wanted = threshold.value * base if threshold.relative else threshold.value
    size = np.abs(values[values != 0])
    typical = float(np.median(size)) if len(size) else wanted
    largest = float(size.max()) if len(size) else wanted
    wanted = min(max(wanted, LEAST_THRESHOLD_PER_VALUE * typical), LARGEST_THRESHOLD_PER_VALUE * largest)
    unit = 10.0 ** (UNIT_DECADES * round(math.log10(typical) / UNIT_DECADES))
    return Scale(False, sign, wanted / unit, base / unit, unit, of_one=level == 0)
