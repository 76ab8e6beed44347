"""How much boots, binaries, history and time may scatter: grids of hypotheses about the noise."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from bisector.core.noise import Readings

BOOT = ((0.0, 0.35), (0.35, 0.15), (0.75, 0.18), (1.5, 0.16), (2.3, 0.1), (3.5, 0.06))
"""(boot spread / run spread, prior): the grid of search.md reaches 2; real kernels reach higher."""
STEP, FADE = 1.5, 0.7
"""Beyond BOOT: factor from one spread to the next, and from its prior to the next one's."""
LIMIT = 0.99
"""Confidence with which the grid reaches beyond the spread that was seen. Quiet runs in boots that scatter
ten times as much are no rarity: with BOOT alone 40% of comparisons of equal commits passed there at 5%."""
UNIT = ((0.0, 0.58), (0.1, 0.2), (0.25, 0.12), (0.5, 0.06), (1.0, 0.04))
"""(spread between binaries / effect, prior). Without the last row 8 of 26 searches blamed wrong commits where
binaries scatter by half of the effect: ends that scatter may show half of it. With it none."""
WALK = ((0.0, 0.75), (0.5, 0.15), (2.0, 0.1))
"""(background over the whole range / effect, prior)."""
DRIFT = ((0.0, 0.8), (0.5, 0.12), (2.0, 0.08))
"""(drift over the time measured so far / effect, prior)."""


def boot_spreads(r: Readings) -> tuple[tuple[float, float], ...]:
    """Return standard deviations that boots of one binary may have, in worse units, with their priors.

    They reach to the upper confidence limit of what the boots show so far, s sqrt(df / chi2): with two boots
    that is far away, with ten it is twice what was seen.
    """
    grid = [(ratio * r.run_sd, prior) for ratio, prior in BOOT]
    seen, df = _scatter(r)
    top = seen * math.sqrt(df / float(chdtri(df, LIMIT))) if df else 0.0
    while grid[-1][0] < top:
        grid.append((grid[-1][0] * STEP, grid[-1][1] * FADE))
    return tuple(grid)


def _scatter(r: Readings) -> tuple[float, int]:
    """Return the pooled standard deviation of boots about the mean of their binary, and its df."""
    _, cell = np.unique(np.stack([r.commit, r.layout]), axis=1, return_inverse=True)
    cell = cell.ravel()
    sizes = np.bincount(cell)
    mean = np.bincount(cell, r.location) / sizes
    df = int((sizes - 1).sum())
    square = float(((r.location - mean[cell]) ** 2).sum())
    return math.sqrt(square / df) if df else 0.0, df
