"""Which runs lie far from their set, named one by one, so that a reader can look them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
