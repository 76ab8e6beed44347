"""Nights of a series: their weights, and how the last of them compare with those before.

A track has, for each night, what the nights up to it say: the baseline (a median), the standard deviation of
a night, the correlation of neighbouring nights. Contrasts compare the last m nights with the baseline before
them. Both are arrays over nights; NaN stands where nothing was measured or too little is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bisector.model.dag import Floats

MAX_BEFORE = 40
"""Nights that a baseline is the median of, at most. The error of the baseline then adds 4% to the variance of
the mean of one night, and a drift of months is followed."""
MIN_BEFORE = 5
"""Nights that a baseline is the median of, at least: after a change a series is blind for a week."""
MAX_AFTER = 20
"""Nights that are compared with the baseline, at most. A step that is found later is not located any more:
with 12 this befell one in seven steps of twice a night's standard deviation under correlation 0.5."""
MAX_SCORE = 2.3
"""Bound of the score of one night, in standard deviations. It lies below SUSPECT_SCORE, so no single night
can make a suspect; two can."""
SCALE_NIGHTS, MIN_SCALE_NIGHTS = 60, 8
"""Nights that the standard deviation of a night is learnt from. Sixty give the median deviation a standard
error of 15%; below eight (41%) no verdict is given."""
RECENT_NIGHTS = 12
"""Nights after which a noise that has grown must be seen: fewer would take chance for growth."""
CORRELATION_NIGHTS = 120
"""Nights that the correlation is learnt from, for a standard error of 0.08."""
PRIOR_CORRELATION, PRIOR_CORRELATION_NIGHTS = 0.3, 20
"""Correlation assumed before any was measured, and how many nights that counts for. A choice: between
independent nights and those of a testbed whose state lasts for days."""
MAX_CORRELATION = 0.8
"""Beyond it nights are a random walk: five of them say less than one independent night."""
NORMAL_SD_PER_MEDIAN_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation (Hampel 1974)."""
MEDIAN_VARIANCE = math.pi / 2
"""Variance of the median over that of the mean, for normal values."""


@dataclass(frozen=True, slots=True)
class Track:
    """A series with what was known of it after each night, arrays (N,), NaN where nothing was.

    level: of the night; baseline: median of up to MAX_BEFORE nights, which are `nights` many; begin: first
    night of the baseline's segment. sd: of a night, by SCALE_NIGHTS; recent_sd: by RECENT_NIGHTS,
    whatever one step is among them; correlation: of neighbouring nights.
    """

    level: Floats
    baseline: Floats
    nights: Floats
    begin: NDArray[np.intp]
    sd: Floats
    recent_sd: Floats
    correlation: Floats


@dataclass(frozen=True, slots=True)
class Contrasts:
    """The last m nights against those before, arrays (N, MAX_AFTER) with m = 1, 2, ...; NaN: not known.

    effect: median of the last m nights less the baseline, sd: its standard deviation. score: mean of the
    nights' distances in standard deviations, each bounded by MAX_SCORE (Huber 1964), over its own deviation.
    """

    effect: Floats
    score: Floats
    sd: Floats


def follow_nights(groups: Sequence[tuple[float, ...]], begins: Sequence[int]) -> Track:
    """Learn baseline, scale and correlation of a series (N,) as they were after each night.

    begins: the first nights of new segments, sorted.
    """
    level = _levels(groups)
    n = len(level)
    starts = np.array([0, *begins])
    begin = starts[np.searchsorted(starts, np.arange(n), side="right") - 1]
    index = np.arange(n)[:, None] + np.arange(1 - MAX_BEFORE, 1)
    before = np.where(index >= begin[:, None], _windows(level, MAX_BEFORE), math.nan)
    baseline, count = _median(before), (~np.isnan(before)).sum(axis=1).astype(float)
    deviation, step = np.full(n, math.nan), np.full(n, math.nan)
    same = begin[1:] == begin[:-1]
    inflation = np.sqrt(1.0 + MEDIAN_VARIANCE / np.maximum(count[:-1], 1.0))
    known = same & (count[:-1] >= MIN_BEFORE)
    deviation[1:][known] = ((level[1:] - baseline[:-1]) / inflation)[known]
    step[1:][same] = np.abs(np.diff(level))[same]
    windows = np.abs(_windows(deviation, SCALE_NIGHTS))
    sd = NORMAL_SD_PER_MEDIAN_DEVIATION * _median(windows)
    sd[(~np.isnan(windows)).sum(axis=1) < MIN_SCALE_NIGHTS] = math.nan
    correlation = _correlations(deviation, sd)
    steps = _median(_windows(step, RECENT_NIGHTS))
    by_steps = NORMAL_SD_PER_MEDIAN_DEVIATION * steps / np.sqrt(2.0 * (1.0 - correlation))
    return Track(level, baseline, count, begin, sd, np.fmax(by_steps, _boot_errors(groups)), correlation)


def _correlations(deviation: Floats, sd: Floats) -> Floats:
    """Return (N,) the correlation of neighbouring nights by the CORRELATION_NIGHTS up to each.

    Estimated by bounded scores; (1 + 3 r) / n is added for its bias (Kendall 1954).
    """
    u = np.full(len(deviation), math.nan)
    u[1:] = np.clip(deviation[1:] / sd[:-1], -MAX_SCORE, MAX_SCORE)
    product = np.full(len(u), math.nan)
    product[1:] = u[1:] * u[:-1]
    pair = np.isfinite(product)
    total, square, count = (
        _windows(np.where(pair, x, 0.0), CORRELATION_NIGHTS, 0.0).sum(axis=1)
        for x in (product, u**2, np.ones(len(u)))
    )
    r = np.divide(total, square, out=np.zeros(len(u)), where=square > 0)
    r += (1.0 + 3.0 * r) / np.maximum(count, 1.0)
    prior = PRIOR_CORRELATION_NIGHTS
    r = (count * r + prior * PRIOR_CORRELATION) / (count + prior)
    result: Floats = np.clip(r, 0.0, MAX_CORRELATION)
    return result


def compare_last_nights(track: Track) -> Contrasts:
    """Compare the last m nights of each night with the baseline before them."""
    n = len(track.level)
    effect, score, error = (np.full((n, MAX_AFTER), math.nan) for _ in range(3))
    for m in range(1, min(MAX_AFTER, n - 1) + 1):
        old, now = np.arange(n - m), np.arange(m, n)
        after = sliding_window_view(track.level[1:], m)
        present = (~np.isnan(after)).sum(axis=1)
        # By the nights before, else a step would hide itself; by the last ones if these scatter more.
        sd = np.fmax(track.sd[old], track.recent_sd[now])
        distance = after - track.baseline[old][:, None]
        u = np.clip(distance / sd[:, None], -MAX_SCORE, MAX_SCORE)
        r = track.correlation[old]
        at_baseline = MEDIAN_VARIANCE * (1.0 + r) / (1.0 - r) / np.maximum(track.nights[old], 1.0)
        variance = _mean_variance(present, r) + np.minimum(at_baseline, 1.0)
        known = (track.nights[old] >= MIN_BEFORE) & ~np.isnan(track.sd[old]) & (present > 0)
        known &= track.begin[now] == track.begin[old]
        mean = np.where(np.isnan(u), 0.0, u).sum(axis=1) / np.maximum(present, 1)
        for table, values in (
            (effect, _median(distance)),
            (score, mean / np.sqrt(variance)),
            (error, sd * np.sqrt(variance)),
        ):
            table[now[known], m - 1] = values[known]
    return Contrasts(effect, score, error)


def _mean_variance(m: NDArray[np.intp], r: Floats) -> Floats:
    """Return the variance of the mean of m neighbouring values of unit variance, parallel to both.

    It is (1 + 2 sum of (1 - j/m) r^j for j = 1 .. m-1) / m under first-order autocorrelation
    (Bartlett 1946).
    """
    j = np.arange(1, MAX_AFTER)
    m = np.maximum(m, 1)[:, None]
    share = np.maximum(1.0 - j / m, 0.0)
    result: Floats = (1.0 + 2.0 * (share * r[:, None] ** j).sum(axis=1)) / m[:, 0]
    return result


def _levels(groups: Sequence[tuple[float, ...]]) -> Floats:
    """Return each night's level (N,): the median of all pairwise means (Hodges and Lehmann 1963), or NaN."""
    result = np.full(len(groups), math.nan)
    for i, values in enumerate(groups):
        if values:
            half = np.array(values) / 2
            result[i] = np.median((half[:, None] + half)[np.triu_indices(len(half))])
    return result


def _boot_errors(groups: Sequence[tuple[float, ...]]) -> Floats:
    """Return (N,) the standard error of each night's level by the scatter of boots in the RECENT_NIGHTS."""
    squares = np.array([float(np.var(g)) * len(g) if g else 0.0 for g in groups])
    free = np.array([max(len(g) - 1.0, 0.0) for g in groups])
    total, df = (_windows(x, RECENT_NIGHTS, 0.0).sum(axis=1) for x in (squares, free))
    result: Floats = np.sqrt(total / np.maximum(df, 1.0) / (free + 1.0))
    return result


def _windows(values: Floats, width: int, fill: float = math.nan) -> Floats:
    """Return (N, width): the last values up to each place, the newest last."""
    return sliding_window_view(np.concatenate([np.full(width - 1, fill), values]), width)


def _median(values: Floats) -> Floats:
    """Return the medians (N,) of rows without their NaN; NaN for rows of nothing else.

    It sorts, where `numpy.nanmedian` warns of empty rows and takes ten times as long.
    """
    ordered = np.sort(values, axis=1)  # NaN come last
    count = (~np.isnan(values)).sum(axis=1)
    row = np.arange(len(values))
    low, high = ordered[row, np.maximum(count - 1, 0) // 2], ordered[row, count // 2 * (count > 0)]
    high = np.where(count % 2 == 1, low, high)
    return np.where(count > 0, low / 2 + high / 2, math.nan)
