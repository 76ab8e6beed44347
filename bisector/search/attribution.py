"""Attribution: what each culprit explains of the total, and the rest, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from bisector.model.decisions import Interval
from bisector.search.metric.scale import Scale
from bisector.search.sequential_test import Evidence

ANOTHER_CULPRIT_PROBABILITY = 0.3
"""Continue after a culprit while P(another culprit) is at least this. By this rule alone both of two culprits
of twice the threshold were found 8 of 12 times. With 0.15 a search costs 2.5 times as much where the
threshold is a tenth of the effect."""
MIN_HIDDEN_EFFECT_SHARE = 0.075
"""Continue after a culprit, too, while the expected effect of another one is at least this share of the
largest effect found."""
MIN_HIDDEN_SHARE_PER_COST = 0.005
"""Stop when that share is below this, times (cost to locate another culprit / cost so far). An effect of a
tenth of the largest one cannot be told from noise: without this rule a threshold of that size costs 70% more,
with it nothing. Of two culprits of one sign both were found 28 of 30 times with it, 29 without (with 0.01:
27)."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What another culprit may hold. probability: that there is one; share: its expected effect as a share
    (0..1) of the largest effect found."""

    probability: float
    share: float

    @property
    def is_explained(self) -> bool:
        """Whether the search may end."""
        return self.probability < ANOTHER_CULPRIT_PROBABILITY and self.share < MIN_HIDDEN_EFFECT_SHARE

    def is_worth_locating(self, seconds: float | None, spent: float) -> bool:
        """Return whether it is worth the lab seconds to locate it (None: not known). spent: so far."""
        return seconds is None or self.share * spent >= MIN_HIDDEN_SHARE_PER_COST * seconds


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
