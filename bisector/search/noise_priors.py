"""Grids of possible standard deviations: of boots, binaries, testbeds, background and drift."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from bisector.model.dag import Floats, Ints
from bisector.search.measurement import Readings
from bisector.stats import grouping
from bisector.stats.grouping import group_combinations

BOOT_SPREAD_PRIOR = ((0.0, 0.35), (0.35, 0.15), (0.75, 0.18), (1.5, 0.16), (2.3, 0.1), (3.5, 0.06))
"""(standard deviation between boots / that between runs, prior). The benchmark of the search reaches 2; real
kernels reach higher."""
GRID_FACTOR, GRID_PRIOR_FACTOR = 1.5, 0.7
"""Where a grid is extended: ratio of one standard deviation to the one before, and of their priors."""
SPREAD_CONFIDENCE = 0.99
"""A grid is extended to the upper limit, at this confidence, of the spread that was measured. Boots that
scatter ten times as much as runs do are no rarity: without the extension 40% of the comparisons of equal
commits passed there at 5%."""
BINARY_SPREAD_PRIOR = ((0.0, 0.58), (0.1, 0.2), (0.25, 0.12), (0.5, 0.06), (1.0, 0.04))
"""(standard deviation between binaries / effect, prior). Where binaries scatter by half of the effect, 8 of
26 searches blamed a wrong commit without the last entry, none with it: the two ends alone show too little
scatter."""
LARGEST_BINARY_SPREAD = 0.25
"""Largest of these that is believed before it is measured, as a part of the level; it has the prior of all
larger ones. That a layout may cost as much as the effect makes sense of 2%, not of 200%: there intervals of
proven culprits held zero. The order of linking slowed one benchmark of many by 57% at most (Curtsinger and
Berger 2013): two of these."""
BACKGROUND_PRIOR = ((0.0, 0.75), (0.5, 0.15), (2.0, 0.1))
"""(standard deviation of the background over the whole range / effect, prior)."""
DRIFT_PRIOR = ((0.0, 0.8), (0.5, 0.12), (2.0, 0.08))
"""(standard deviation of the drift over the time measured so far / effect, prior)."""
TESTBED_PRIOR = ((0.0, 0.6), (0.7, 0.4))
"""(standard deviation between testbeds / effect, prior), where there are several."""

SpreadGrid = tuple[tuple[float, float], ...]
"""Standard deviations, the largest last, each with its prior."""


def boot_spreads(r: Readings) -> SpreadGrid:
    """Return possible standard deviations between boots of one binary, in worse units.

    The scatter of all boots of one commit is the measure, whatever their layouts: while each layout has one
    boot, boot and binary spread cannot be told apart. With several testbeds it is what levels of commits and
    of testbeds leave: two testbeds with one boot of each end tell of scatter, too.
    """
    if len(r.testbeds) == 1:
        top = _upper_spread_limit(r.location, r.commit, r.testbed)
    else:
        top = _upper_limit(*grouping.subtract_two_ways(r.location, r.commit, r.testbed))
    return _extend_grid(BOOT_SPREAD_PRIOR, r.run_sd, top)


def binary_spreads(r: Readings, scale: float, grid: SpreadGrid = BINARY_SPREAD_PRIOR) -> SpreadGrid:
    """Return possible standard deviations between binaries of equal code, in worse units.

    grid: in multiples of scale.
    """
    (commit, testbed, _), binary = group_combinations(r.commit, r.testbed, r.layout)
    largest = LARGEST_BINARY_SPREAD * abs(r.scale.base) / scale
    believed = {part: prior for part, prior in grid if part < largest}
    if beyond := sum(prior for part, prior in grid if part >= largest):
        believed[largest] = beyond
    top = _upper_spread_limit(_group_means(r.location, binary), commit, testbed)
    return _extend_grid(tuple(believed.items()), scale, top)


def testbed_spreads(r: Readings, effect: float) -> SpreadGrid:
    """Return possible standard deviations between testbeds, in worse units, up to the measured spread."""
    if len(r.testbeds) == 1:
        return ((0.0, 1.0),)
    grid = tuple((part * effect, prior) for part, prior in TESTBED_PRIOR)
    (commit, _), pair = group_combinations(r.commit, r.testbed)
    widest = _upper_spread_limit(_group_means(r.location, pair), commit)
    return (*grid, (widest, GRID_PRIOR_FACTOR * grid[-1][1])) if widest > grid[-1][0] else grid


def _group_means(level: Floats, group: Ints) -> Floats:
    """Return the mean level of each group; the groups are 0, 1, ..., none empty."""
    result: Floats = np.bincount(group, level) / np.bincount(group)
    return result


def _upper_spread_limit(level: Floats, *parts: Ints) -> float:
    """Return the upper confidence limit of the spread among levels that agree in all parts; 0 without any.

    It is s sqrt(df / chi2): far above s for two levels, twice s for ten.
    """
    _, group = group_combinations(*parts)
    mean = _group_means(level, group)
    df = len(level) - len(mean)
    return _upper_limit(level - mean[group], df)


def _upper_limit(residuals: Floats, df: int) -> float:
    """Return the upper confidence limit of a standard deviation; 0 without degrees of freedom."""
    return math.sqrt(float((residuals**2).sum()) / float(chdtri(df, SPREAD_CONFIDENCE))) if df else 0.0


def _extend_grid(parts: SpreadGrid, scale: float, top: float) -> SpreadGrid:
    """Return a grid, given in multiples of scale, extended to at least the top."""
    grid = [(part * scale, prior) for part, prior in parts]
    while grid[-1][0] < top:
        grid.append((grid[-1][0] * GRID_FACTOR, grid[-1][1] * GRID_PRIOR_FACTOR))
    return tuple(grid)
