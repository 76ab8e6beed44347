"""How much boots, binaries, testbeds, history and time may scatter: grids of hypotheses about the noise."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from bisector.search.measurement import Floats, Ints, Readings, group_combinations

BOOT_SPREAD_PRIOR = ((0.0, 0.35), (0.35, 0.15), (0.75, 0.18), (1.5, 0.16), (2.3, 0.1), (3.5, 0.06))
"""(boot spread / run spread, prior): the benchmark of the search reaches 2; real kernels reach higher."""
GRID_FACTOR, GRID_PRIOR_FACTOR = 1.5, 0.7
"""Beyond a grid: factor from one spread to the next, and from its prior to the next one's."""
SPREAD_CONFIDENCE = 0.99
"""Confidence with which a grid reaches beyond the spread that was seen. Quiet runs in boots that scatter
ten times as much are no rarity: with BOOT_SPREAD_PRIOR alone
40% of comparisons of equal commits passed there at 5%."""
BINARY_SPREAD_PRIOR = ((0.0, 0.58), (0.1, 0.2), (0.25, 0.12), (0.5, 0.06), (1.0, 0.04))
"""(spread between binaries / effect, prior). Without the last row 8 of 26 searches blamed wrong commits where
binaries scatter by half of the effect: ends that scatter may show half of it. With it none."""
BACKGROUND_PRIOR = ((0.0, 0.75), (0.5, 0.15), (2.0, 0.1))
"""(background over the whole range / effect, prior)."""
DRIFT_PRIOR = ((0.0, 0.8), (0.5, 0.12), (2.0, 0.08))
"""(drift over the time measured so far / effect, prior)."""
TESTBED_PRIOR = ((0.0, 0.6), (0.7, 0.4))
"""(differences between testbeds / effect, prior), where there are several."""

Spreads = tuple[tuple[float, float], ...]
"""Standard deviations, largest last, each with its prior."""


def boot_spreads(r: Readings) -> Spreads:
    """Return what boots of one binary may scatter by, in worse units.

    What boots of one commit show counts, whatever their layouts: where each has one of its own, nobody knows
    yet whether boots scatter or binaries.
    """
    return _extend_grid(BOOT_SPREAD_PRIOR, r.run_sd, _upper_spread_limit(r.location, r.commit, r.testbed))


def binary_spreads(r: Readings, scale: float, grid: Spreads = BINARY_SPREAD_PRIOR) -> Spreads:
    """Return what binaries of equal code may scatter by, in worse units. grid: in parts of scale."""
    (commit, testbed, _), binary = group_combinations(r.commit, r.testbed, r.layout)
    return _extend_grid(grid, scale, _upper_spread_limit(_group_means(r.location, binary), commit, testbed))


def testbed_spreads(r: Readings, effect: float) -> Spreads:
    """Return what testbeds may differ by, in worse units: the last is wide enough for any that are there."""
    if len(r.testbeds) == 1:
        return ((0.0, 1.0),)
    grid = tuple((part * effect, prior) for part, prior in TESTBED_PRIOR)
    (commit, _), pair = group_combinations(r.commit, r.testbed)
    widest = _upper_spread_limit(_group_means(r.location, pair), commit)
    return (*grid, (widest, GRID_PRIOR_FACTOR * grid[-1][1])) if widest > grid[-1][0] else grid


def _group_means(level: Floats, group: Ints) -> Floats:
    """Return the mean of each group. group: numbered, none is empty."""
    result: Floats = np.bincount(group, level) / np.bincount(group)
    return result


def _upper_spread_limit(level: Floats, *parts: Ints) -> float:
    """Return the upper confidence limit of the spread that levels alike in all parts show, 0 without any.

    That is s sqrt(df / chi2): with two levels it is far away, with ten it is twice what was seen.
    """
    _, group = group_combinations(*parts)
    mean = _group_means(level, group)
    df = len(level) - len(mean)
    if not df:
        return 0.0
    return math.sqrt(float(((level - mean[group]) ** 2).sum()) / float(chdtri(df, SPREAD_CONFIDENCE)))


def _extend_grid(parts: Spreads, scale: float, top: float) -> Spreads:
    """Return a grid that is given in parts of scale, continued to the top."""
    grid = [(part * scale, prior) for part, prior in parts]
    while grid[-1][0] < top:
        grid.append((grid[-1][0] * GRID_FACTOR, grid[-1][1] * GRID_PRIOR_FACTOR))
    return tuple(grid)
