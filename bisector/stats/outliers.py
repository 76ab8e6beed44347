"""Which runs lie far from their set, named one by one; and whether a set falls into two groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FAR = 6.0
"""In robust standard deviations: eight normal values hold one beyond four only once in two thousand sets, but
runs have heavier tails than that; at six the 9.269 s among pipe-tests of 7 s stands at nine."""
_LEAST = 0.001
"""Of the median: where most values repeat exactly, the median deviation is no measure of anything."""
FEWEST = 5
"""Below five values a median absolute deviation says nothing."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """One run. boot, run: counted from 1, as people count; distance: in robust standard deviations."""

    value: float
    boot: int
    run: int
    distance: float


def find(boots: Sequence[Sequence[float]]) -> tuple[Outlier, ...]:
    """Return the runs beyond FAR; the scale is 1.4826 times the median absolute deviation (Hampel 1974)."""
    values = np.array([v for runs in boots for v in runs], dtype=float)
    values = values[np.isfinite(values)]
    if len(values) < FEWEST:
        return ()
    centre = float(np.median(values))
    scale = max(1.4826 * float(np.median(np.abs(values - centre))), _LEAST * abs(centre))
    if scale == 0:
        return ()
    return tuple(
        Outlier(v, i, j, abs(v - centre) / scale)
        for i, runs in enumerate(boots, start=1)
        for j, v in enumerate(runs, start=1)
        if np.isfinite(v) and abs(v - centre) > FAR * scale
    )


def without(boots: Sequence[Sequence[float]], found: Sequence[Outlier]) -> tuple[tuple[float, ...], ...]:
    """Return the boots without these runs."""
    gone = {(o.boot, o.run) for o in found}
    return tuple(
        tuple(v for j, v in enumerate(runs, start=1) if (i, j) not in gone)
        for i, runs in enumerate(boots, start=1)
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """Two groups of runs: how many, and their means, the lower one first. by_boot: no boot is in both."""

    counts: tuple[int, int]
    means: tuple[float, float]
    by_boot: bool


_SEPARATE = ((24, 5.0), (16, 6.0), (10, 8.0), (8, 9.5))
"""(values, Ashman's D): so far apart normal values fall by chance once in a thousand (drawn: 3000 sets of
each size). Fewer than eight values are not judged."""
_PART = 0.2
"""Of the values, and at least three: fewer are outliers, not a group."""


def groups(boots: Sequence[Sequence[float]]) -> Groups | None:
    """Return the two groups that a set falls into, None if it is one.

    The split with the largest D = (difference of means) / sqrt(mean of the variances) counts (Ashman, Bird
    and Zepf 1994); where all values of a group are equal, a thousandth of the median stands for their spread.
    """
    values = [(v, i) for i, runs in enumerate(boots) for v in runs if np.isfinite(v)]
    values.sort()
    count = len(values)
    limit = next((d for least, d in _SEPARATE if count >= least), None)
    if limit is None:
        return None
    numbers = np.array([v for v, _ in values])
    floor = _LEAST * abs(float(np.median(numbers)))
    fewest = max(3, math.ceil(_PART * count))
    at, best = _split(numbers, fewest, floor)
    if best <= limit:
        return None
    low_boots, high_boots = {i for _, i in values[:at]}, {i for _, i in values[at:]}
    return Groups(
        (at, count - at),
        (float(numbers[:at].mean()), float(numbers[at:].mean())),
        by_boot=len(low_boots | high_boots) > 1 and low_boots.isdisjoint(high_boots),
    )


def _split(ordered: NDArray[np.float64], fewest: int, floor: float) -> tuple[int, float]:
    """Return (length of the lower part, its D to the upper one) of the split with the largest D."""
    centred = ordered - ordered.mean()  # so that squares do not cancel
    lengths = np.arange(fewest, len(ordered) - fewest + 1)
    sums, squares = np.cumsum(centred)[lengths - 1], np.cumsum(centred**2)[lengths - 1]
    rest = len(ordered) - lengths
    others, all_squares = float(centred.sum()) - sums, float((centred**2).sum()) - squares
    low = np.maximum(squares - sums**2 / lengths, 0.0) / (lengths - 1)
    high = np.maximum(all_squares - others**2 / rest, 0.0) / (rest - 1)
    spread = np.maximum(np.sqrt((low + high) / 2), floor)
    gap = others / rest - sums / lengths
    distance = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0)
    best = int(distance.argmax())
    return int(lengths[best]), float(distance[best])
