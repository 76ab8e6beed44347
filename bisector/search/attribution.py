"""How much of the total each culprit explains: total = A + B + rest, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import norm

from bisector.model.records import Interval
from bisector.search.measurement import Scale
from bisector.search.sequential_test import Evidence


@dataclass(frozen=True, slots=True)
class Part:
    """A difference in worse units with its standard deviation and interval."""

    low: float
    estimate: float
    high: float
    sd: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """The total, what each culprit explains, and the rest; estimates add up exactly."""

    total: Part
    parts: tuple[Part, ...]
    rest: Part


def part(e: Evidence) -> Part:
    """Return a comparison as a part of the total."""
    return Part(e.low, e.estimate, e.high, e.sd)


def attribute_total(total: Evidence, culprits: Sequence[Evidence], alpha: float) -> Attribution:
    """Return what is left after the culprits. All comparisons come from different boots, so variances add."""
    sd = math.sqrt(total.sd**2 + sum(e.sd**2 for e in culprits))
    left = total.estimate - sum(e.estimate for e in culprits)
    half = float(norm.isf(alpha / 2)) * sd
    return Attribution(
        part(total), tuple(part(e) for e in culprits), Part(left - half, left, left + half, sd)
    )


def add_up_changes(scale: Scale, split: Attribution) -> tuple[Interval, ...]:
    """Return what each culprit, in the order of history, and then the rest add to good's level.

    As fractions of good's level: they add up to the total's relative change, which the culprits' own
    relative changes do not, for a second loss of 10% comes on top of the first.
    """
    level, result = 1.0, []
    for p in (*split.parts, split.rest):
        change = scale.to_relative_change(p.low, p.estimate, p.high)
        result.append(Interval(level * change.low, level * change.estimate, level * change.high))
        if scale.log:
            level *= 1 + change.estimate
    return tuple(result)
