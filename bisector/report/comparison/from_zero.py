"""Changes from a level of zero, of which there are no percentages, in the forms of other programs."""

from __future__ import annotations

import math

from bisector.stats.comparison_result import Comparison

FROM_ZERO = "from 0"
"""Stands where a form has a percentage; both values are beside it."""


def mean_change(found: Comparison) -> float | None:
    """Return the change of the mean in percent; None where the base's mean is 0."""
    change = found.mean.estimate
    if math.isfinite(change):
        return 100 * change
    base = found.a.mean  # the estimate's base is the median, which may be 0 where the mean is not
    return 100 * (found.b.mean - base) / abs(base) if base else None
