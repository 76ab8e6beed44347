"""Two modes of runs: whether they are there, how far apart, and whether a boot keeps its mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SEPARATE = 3.0
"""Modes closer than three of their own deviations overlap and cannot be told apart run by run."""
_STRONG_BIC = 10.0
"""Kass and Raftery (1995): a difference of 10 is very strong evidence."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes of the runs. low, high: relative to the level; share: of the higher one.

    by_boot: every boot stays in one mode, so a mode is something that a boot gets, like its memory layout.
    """

    low: float
    high: float
    share: float
    by_boot: bool


def find_modes(groups: Sequence[Floats]) -> Modes | None:
    """Return two modes where a mixture of two normals of one width is far more plausible than one normal."""
    values = np.concatenate(list(groups))
    if len(values) < 12 or not values.std():
        return None
    low, high = (float(x) for x in np.percentile(values, (20, 80)))
    width, share = float(values.std()) / 2 or 1e-12, 0.5
    for _ in range(200):
        a = np.log(1 - share) - 0.5 * ((values - low) / width) ** 2
        b = np.log(share) - 0.5 * ((values - high) / width) ** 2
        weight = 1 / (1 + np.exp(np.clip(a - b, -700, 700)))
        upper = float(weight.sum())
        if not 1 <= upper <= len(values) - 1:
            return None
        share = upper / len(values)
        high = float((weight * values).sum() / upper)
        low = float(((1 - weight) * values).sum() / (len(values) - upper))
        spread = (1 - weight) * (values - low) ** 2 + weight * (values - high) ** 2
        width = max(math.sqrt(float(spread.mean())), 1e-12)
    n = len(values)
    one = -n * math.log(float(values.std())) - 0.5 * n
    mixture = np.logaddexp(
        math.log(1 - share) - 0.5 * ((values - low) / width) ** 2,
        math.log(share) - 0.5 * ((values - high) / width) ** 2,
    )
    two = float(mixture.sum()) - n * math.log(width)
    gain = 2 * (two - one) - 2 * math.log(n)  # two more parameters
    if gain < _STRONG_BIC or high - low < _SEPARATE * width or not 0.1 <= share <= 0.9:
        return None
    middle = (low + high) / 2
    sides = [float((g > middle).mean()) for g in groups]
    return Modes(low, high, share, all(s < 0.1 or s > 0.9 for s in sides))
