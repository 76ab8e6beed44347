"""Runs that lie far from their set, each with its place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.model.dag import Floats

MIN_OUTLIER_DISTANCE = 6.0
"""Distance in robust standard deviations from which a run is an outlier. Eight normal values hold one beyond
four only once in two thousand sets, but runs have heavier tails; the 9.269 s among pipe-tests of 7 s are at
nine."""
MIN_RELATIVE_SD = 0.001
"""Least robust standard deviation, as a share of the median: where most values repeat exactly theirs is zero,
which measures no scatter."""
MIN_VALUES = 5
"""Below five values a median absolute deviation says nothing."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """One run. boot, run: counted from 1; distance: in robust standard deviations."""

    value: float
    boot: int
    run: int
    distance: float


def find(boots: Sequence[Sequence[float]]) -> tuple[Outlier, ...]:
    """Return the runs beyond MIN_OUTLIER_DISTANCE robust standard deviations from the median of all."""
    values, boot_of = flatten(boots)
    finite = values[np.isfinite(values)]
    if len(finite) < MIN_VALUES:
        return ()
    centre = float(np.median(finite))
    scale = max(robust_sd(finite), MIN_RELATIVE_SD * abs(centre))
    if scale == 0:
        return ()
    distances = np.abs(values - centre) / scale
    far = np.flatnonzero(np.isfinite(values) & (distances > MIN_OUTLIER_DISTANCE))
    first = np.searchsorted(boot_of, boot_of[far])  # where the run's boot begins
    return tuple(
        Outlier(float(values[i]), int(boot_of[i]) + 1, int(i - start) + 1, float(distances[i]))
        for i, start in zip(far, first, strict=True)
    )


def without(boots: Sequence[Sequence[float]], found: Sequence[Outlier]) -> tuple[tuple[float, ...], ...]:
    """Return the boots without these runs."""
    kept = [bytearray(b"\1") * len(runs) for runs in boots]
    for one in found:
        kept[one.boot - 1][one.run - 1] = 0
    return tuple(tuple(itertools.compress(runs, marks)) for runs, marks in zip(boots, kept, strict=True))


def robust_sd(values: Floats) -> float:
    """Return 1.4826 times the median absolute deviation, which estimates a normal sd (Hampel 1974)."""
    from scipy import stats  # takes half a second, which a planner without a calibration need not wait for

    return float(stats.median_abs_deviation(values, scale="normal"))


def flatten(boots: Sequence[Sequence[float]]) -> tuple[Floats, NDArray[np.intp]]:
    """Return (all runs, boots one after the other; the index of each run's boot)."""
    sizes = [len(runs) for runs in boots]
    values = np.fromiter(itertools.chain.from_iterable(boots), dtype=float, count=sum(sizes))
    return values, np.repeat(np.arange(len(sizes)), sizes)
