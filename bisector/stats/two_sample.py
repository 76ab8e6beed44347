"""Tests and intervals for the shift between two small samples, exact where counting allows it.

Every function takes independent units: boots where there are several, else the runs of the one boot.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

MOST_SPLITS = 20_000
"""Up to so many splits all are counted (two sides of eight have 12,870); beyond, the p-value is drawn."""
DRAWS = 4_000
"""Random splits and bootstrap draws: the 95% ends are then known to a few hundredths of a standard error."""


MOST_DRAWN = 400
"""Units of both sides up to which random splits are drawn; of more the rank sum is normal to four digits."""
MOST_PAIRS = 4_000_000
"""Differences that are sorted, in half a second; beyond, both sides are thinned to their quantiles."""


def hodges_lehmann(a: Floats, b: Floats) -> float:
    """Return the median of all differences b - a (Hodges and Lehmann 1963)."""
    a, b = _thinned(a, b)
    return float(np.median(b[:, None] - a))


def fewest(alpha: float) -> int:
    """Return the fewest units a side that can be significant, two-sided: 2/C(2n,n) <= alpha."""
    n = 1
    while 2 / math.comb(2 * n, n) > alpha:
        n += 1
    return n


def exact_possible(n: int, m: int, alpha: float) -> bool:
    """Return whether the most extreme split of n + m units is rarer than alpha."""
    return 2 / math.comb(n + m, n) <= alpha


def permutation_p(a: Floats, b: Floats, random: np.random.Generator) -> float:
    """Return the two-sided p-value of Wilcoxon's rank sum over all splits, or over DRAWS random ones.

    Ties get midranks, which is exact because the very ranks are permuted. A random test counts the split
    that was seen itself (Phipson and Smyth 2010), so it is never zero. Many units: the normal approximation.
    """
    ranks = _midranks(np.concatenate([a, b]))
    n, total = len(a), len(a) + len(b)
    centre = n * (total + 1) / 2
    seen = abs(ranks[:n].sum() - centre) - 1e-9
    if math.comb(total, n) <= MOST_SPLITS:
        chosen = np.fromiter(
            itertools.chain.from_iterable(itertools.combinations(range(total), n)), dtype=np.intp
        ).reshape(-1, n)
        return float(np.mean(np.abs(ranks[chosen].sum(axis=1) - centre) >= seen))
    if total > MOST_DRAWN:
        error = math.sqrt(n * (total - n) * float(ranks.var(ddof=1)) / total)
        return 2 * float(special.ndtr(-max(seen, 0.0) / error)) if error else 1.0
    draws = random.permuted(np.tile(ranks, (DRAWS, 1)), axis=1)[:, :n].sum(axis=1)
    return float((1 + np.sum(np.abs(draws - centre) >= seen)) / (DRAWS + 1))


def exact_interval(a: Floats, b: Floats, alpha: float) -> tuple[float, float]:
    """Return the interval of the shift b - a that inverts the rank-sum test (Moses; Lehmann 1975, ch. 2).

    Its ends are order statistics of all differences; it covers at least 1 - alpha where `exact_possible`.
    """
    n, m = len(a), len(b)
    few, many = _thinned(a, b)
    differences = np.sort((many[:, None] - few).ravel())
    if n * m <= 400:  # the null distribution of U, counted
        counts = _u_counts(n, m)
        below = np.cumsum(counts) / counts.sum()
        k = int(np.searchsorted(below, alpha / 2, side="right"))
    else:
        z = float(special.ndtri(1 - alpha / 2))
        k = int(n * m / 2 - z * math.sqrt(n * m * (n + m + 1) / 12))
    k = max(k * len(differences) // (n * m), 1)
    return float(differences[k - 1]), float(differences[len(differences) - k])


def welch(a: Floats, b: Floats, alpha: float) -> tuple[float, float, float]:
    """Return (low, high, p) of the difference of means b - a, after Welch; for two or three units a side.

    Two equal constants give p 1, two different constants p 0: an exact clock has no spread.
    """
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    shift = float(b.mean() - a.mean())
    if va + vb <= 0:
        return shift, shift, 1.0 if shift == 0 else 0.0
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return around(shift, math.sqrt(va + vb), freedom, alpha)


def around(shift: float, error: float, freedom: float, alpha: float) -> tuple[float, float, float]:
    """Return (low, high, p) of a shift with a standard error; freedom inf is the normal distribution."""
    if error <= 0:
        return shift, shift, 1.0 if shift == 0 else 0.0
    finite = math.isfinite(freedom)
    z = float(special.stdtrit(freedom, 1 - alpha / 2) if finite else special.ndtri(1 - alpha / 2))
    t = -abs(shift) / error
    p = 2 * float(special.stdtr(freedom, t) if finite else special.ndtr(t))
    return shift - z * error, shift + z * error, p


def bootstrap_ratio(a: Floats, b: Floats, alpha: float, random: np.random.Generator) -> tuple[float, float]:
    """Return the percentile interval of mean(b) / mean(a) - 1, units redrawn on each side (Efron 1979).

    Many units: the normal approximation (delta method), which they make good and redrawing would make slow.
    """
    if len(a) + len(b) > MOST_DRAWN:
        over, under = float(b.mean()), float(a.mean())
        error = math.hypot(
            float(b.std(ddof=1)) / math.sqrt(len(b)) / under,
            over * float(a.std(ddof=1)) / math.sqrt(len(a)) / under**2,
        )
        z = float(special.ndtri(1 - alpha / 2))
        return over / under - 1 - z * error, over / under - 1 + z * error
    top = b[random.integers(len(b), size=(DRAWS, len(b)))].mean(axis=1)
    bottom = a[random.integers(len(a), size=(DRAWS, len(a)))].mean(axis=1)
    ratios = top / np.where(bottom == 0, np.nan, bottom) - 1
    low, high = np.nanquantile(ratios, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def needed(spread: float, change: float, alpha: float) -> int:
    """Return how many units a side show a relative change nine times in ten, given their relative spread.

    The normal approximation 2 (z_alpha/2 + z_0.9)^2 (spread / change)^2, over 3/pi for ranks (the relative
    efficiency of Wilcoxon's test, Lehmann 1975), and never fewer than `fewest`.
    """
    if change <= 0:
        return fewest(alpha)
    z = float(special.ndtri(1 - alpha / 2) + special.ndtri(0.9))
    return max(fewest(alpha), math.ceil(2 * (z * spread / change) ** 2 * math.pi / 3))


def _thinned(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return both sides, or as many of their quantiles as keep the differences countable."""
    if len(a) * len(b) <= MOST_PAIRS:
        return a, b
    most = math.isqrt(MOST_PAIRS)
    places = (np.arange(most) + 0.5) / most
    small = [x if len(x) <= most else np.quantile(x, places) for x in (a, b)]
    return small[0], small[1]


def _midranks(values: Floats) -> Floats:
    order = np.sort(values)
    return np.asarray(
        (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") + 1) / 2
    )


def _u_counts(n: int, m: int) -> Floats:
    """Return how many splits of n + m ranks have U = 0 .. nm: the Gaussian binomial's coefficients."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1.0
    for i in range(1, n + 1):
        high = m + i
        if high <= n * m:  # times (1 - q^(m+i))
            counts[high:] -= counts[:-high].copy()
        for j in range(i, n * m + 1):  # over (1 - q^i)
            counts[j] += counts[j - i]
    return counts
