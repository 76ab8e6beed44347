"""From the points of a series to its levels, what they show, and how noisy they are."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bisector.model.decisions import Interval
from bisector.model.series import Night, NightVerdict, Point
from bisector.stats import change_points
from bisector.stats.variance_components import VarianceComponents, components

if TYPE_CHECKING:
    from bisector.model.goal import Metric

_LEAST_BOOTS = 8
"""Fewest boots whose noise is shown: with eight a standard deviation is known to about a quarter."""
_NOISE_NIGHTS = 60
"""Most nights that the noise is taken from: as many as the detector uses (`stats.night_contrasts`)."""


def level_of(point: Point) -> float:
    """Return the level of a boot: the median of its runs."""
    return statistics.median(point.values)


def effect_unit(metric: Metric) -> str:
    """Return the unit of the changes that nights show; '' where they are relative."""
    return "" if metric.threshold.relative else metric.unit


def verdicts(nights: Sequence[Night], points: Sequence[Point], metric: Metric) -> Mapping[int, NightVerdict]:
    """Return what each measured night showed by the nights before it in history: number -> verdict.

    nights: by place.
    """
    boots = _by_night(points)
    measured = [night for night in nights if any(not point.reference for point in boots[night.number])]
    logs = metric.threshold.relative and all(value > 0 for point in points for value in point.values)

    def levels(night: Night, *, reference: bool) -> tuple[float, ...]:
        found = [level_of(point) for point in boots[night.number] if point.reference == reference]
        return tuple(math.log(level) if logs else level for level in found)

    least = metric.threshold.value
    of_level = metric.threshold.relative and not logs  # of values around zero
    found = change_points.scan(
        [change_points.NightLevels(levels(n, reference=False), levels(n, reference=True)) for n in measured],
        [i for i, night in enumerate(measured) if night.new_level],
        math.log1p(least) if logs else least,
        of_level=of_level,
    )
    numbers = [night.number for night in measured]
    return {
        number: _verdict(one, numbers, logs, of_level) for number, one in zip(numbers, found, strict=True)
    }


def _verdict(
    found: change_points.Verdict, numbers: Sequence[int], logs: bool, of_level: bool
) -> NightVerdict:
    """Return a verdict for people. of_level: changes become fractions of the level before them.

    A level of zero has no fractions: changes are then in the metric's unit.
    """

    def base(level: float | None) -> float:
        return abs(level or 1.0) if of_level else 1.0

    def people(value: Interval | None, level: float | None) -> Interval | None:
        if value is None:
            return None
        ends = (value.low, value.estimate, value.high)
        return Interval(*(math.expm1(min(end, 50.0)) if logs else end / base(level) for end in ends))

    change = found.change
    night_sd = None if found.night_sd is None else found.night_sd / base(found.level)
    if change is None:
        return NightVerdict(found.status, night_sd)
    return NightVerdict(
        found.status,
        night_sd,
        numbers[change.last_good],
        numbers[change.first_bad],
        people(change.effect, change.before),
        people(change.reference, change.reference_before),
    )


def noise_of_nights(points: Sequence[Point]) -> VarianceComponents | None:
    """Return the scatter of runs and boots within nights, as fractions of the level; None: too few boots."""
    numbers = sorted({point.night for point in points})[-_NOISE_NIGHTS:]
    groups, nights = [], 0
    for boots in _by_night([p for p in points if p.night >= numbers[0] and not p.reference]).values():
        level = abs(statistics.fmean(level_of(boot) for boot in boots))
        if len(boots) > 1 and level > 0:
            nights += 1
            groups += [np.array(boot.values) / level for boot in boots]
    runs = sum(len(group) for group in groups)
    if len(groups) < _LEAST_BOOTS or runs <= len(groups):
        return None
    run, run_df, boot, boot_df = components(groups)
    return VarianceComponents(run.estimate, run_df, boot.estimate, max(boot_df - nights, 1.0))


def _by_night(points: Sequence[Point]) -> Mapping[int, list[Point]]:
    found: dict[int, list[Point]] = defaultdict(list)
    for point in points:
        found[point.night].append(point)
    return found
