"""Two modes of a set of runs: whether they exist, how far apart, and whether a boot keeps its mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bisector.model.dag import Floats
from bisector.stats.outliers import MIN_RELATIVE_SD, flatten

SEPARATION = ((96, 4.5), (24, 5.0), (16, 6.0), (10, 8.0), (8, 9.5))
"""(values, Ashman's D): of so many normal values, a split this clear comes by chance once in a thousand sets
(simulated, 3000 sets of each size). From 96 values on, the bound is that of uniform values, which have one
mode too. Fewer than eight values are not judged."""
MIN_SHARE = 0.2
"""Least share of the values in a mode: chosen, a smaller part is outliers."""
MIN_MEMBERS = 3
"""Fewest values in a mode: chosen, two may be close by chance."""
STRAY_SHARE = 0.1
"""A boot keeps its mode if less than this share of its runs is in the other one: modes overlap a little."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes of the runs. low, high: their means; counts: runs of each; share: of the higher one.

    by_boot: every boot stays in one mode, so a boot gets its mode, as it gets its memory layout.
    """

    low: float
    high: float
    counts: tuple[int, int]
    share: float
    by_boot: bool


def find(boots: Sequence[Sequence[float]]) -> Modes | None:
    """Return the two modes that the finite runs fall into, None if they have one.

    The split with the largest D = (difference of means) / sqrt(mean of the variances) counts (Ashman, Bird
    and Zepf 1994). Where all values of a mode are equal, a thousandth of the median stands for their sd.
    """
    values, boot_of = flatten(boots)
    finite = np.isfinite(values)
    values, boot_of = values[finite], boot_of[finite]
    needed = next((d for least, d in SEPARATION if len(values) >= least), None)
    if needed is None:
        return None
    ordered = np.sort(values)
    fewest = max(MIN_MEMBERS, math.ceil(MIN_SHARE * len(values)))
    at, separation = _best_split(ordered, fewest, MIN_RELATIVE_SD * abs(float(np.median(ordered))))
    if separation <= needed:
        return None
    sizes = np.bincount(boot_of)
    shares = (np.bincount(boot_of, weights=values >= ordered[at]) / np.maximum(sizes, 1))[sizes > 0]
    return Modes(
        low=float(ordered[:at].mean()),
        high=float(ordered[at:].mean()),
        counts=(at, len(values) - at),
        share=1 - at / len(values),
        by_boot=len(shares) > 1 and bool(((shares < STRAY_SHARE) | (shares > 1 - STRAY_SHARE)).all()),
    )


def _best_split(ordered: Floats, fewest: int, min_sd: float) -> tuple[int, float]:
    """Return (length of the lower part, its D to the upper one) of the split with the largest D."""
    centred = ordered - ordered.mean()  # so that squares do not cancel
    lengths = np.arange(fewest, len(ordered) - fewest + 1)
    sums, squares = np.cumsum(centred)[lengths - 1], np.cumsum(centred**2)[lengths - 1]
    rest = len(ordered) - lengths
    others, all_squares = float(centred.sum()) - sums, float((centred**2).sum()) - squares
    low = np.maximum(squares - sums**2 / lengths, 0.0) / (lengths - 1)
    high = np.maximum(all_squares - others**2 / rest, 0.0) / (rest - 1)
    spread = np.maximum(np.sqrt((low + high) / 2), min_sd)
    gap = others / rest - sums / lengths
    distance = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0)
    best = int(distance.argmax())
    return int(lengths[best]), float(distance[best])
