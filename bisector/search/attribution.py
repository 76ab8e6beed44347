"""Attribution: what each culprit explains of the total, and the rest, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from bisector.model.decisions import Interval
from bisector.search.measurement import Scale
from bisector.search.sequential_test import Evidence


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in worse units with its interval and standard deviation."""

    low: float
    estimate: float
    high: float
    sd: float


def unexplained_rest(total: Evidence, culprits: Sequence[Evidence], alpha: float) -> Difference:
    """Return the total without the culprits. All comparisons use different boots, so their variances add."""
    sd = math.sqrt(total.sd**2 + sum(e.sd**2 for e in culprits))
    rest = total.estimate - sum(e.estimate for e in culprits)
    half = -float(ndtri(alpha / 2)) * sd
    return Difference(rest - half, rest, rest + half, sd)


def add_up_changes(scale: Scale, parts: Sequence[Evidence | Difference]) -> tuple[Interval, ...]:
    """Return what each part, in the order of history, adds to the level as a fraction of good's level.

    These fractions add up to the total's relative change. The parts' own relative changes do not: a second
    loss of 10% is 11% of good's level.
    """
    level, result = 1.0, []
    for p in parts:
        change = scale.to_relative_change(p.low, p.estimate, p.high)
        result.append(Interval(level * change.low, level * change.estimate, level * change.high))
        if scale.log:
            level *= 1 + change.estimate
    return tuple(result)
