"""Tests and intervals for the shift between two samples; exact where the splits can be counted.

`log_e_larger` is evidence that may be looked at after every value.

Every function takes the groups of a comparison, the values that are independent of each other: boots where
there are several, else the runs of the one boot. What SciPy has comes from SciPy.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from scipy import special

from bisector.model.dag import Floats, Ints, Mask

MAX_COUNTED_SPLITS = 20_000
"""With ties, all splits of two sides are counted up to this number (two sides of eight have 12,870), which
takes 0.1 s; of more splits RESAMPLES are drawn."""
RESAMPLES = 4_000
"""Random splits and bootstrap samples. The end of a 95% interval then has an error of a few hundredths of a
standard error."""
MAX_RESAMPLED_GROUPS = 400
"""Groups of both sides together up to which splits are counted or drawn. The rank sum of more groups is
normal to four digits, and the exact distribution of 400 already takes 0.1 s."""
MAX_DIFFERENCES = 4_000_000
"""Pairwise differences that are sorted, which takes 0.5 s. Larger sides are replaced by their quantiles."""
MAX_COUNTED_PAIRS = 400
"""Product of the sides up to which the interval's ends come from the counted null distribution (20 x 20). Of
more pairs the normal approximation gives the same order statistics to within one."""
HAZARD_RATIOS = np.array([1.3, 1.8, 3.0, 12.0, 60.0, 1e6])
"""Ratios of the two hazards that are mixed, in both orders of time: from groups that overlap nearly wholly
(normal values one standard deviation apart have about 3) to groups that do not overlap."""
HAZARD_WEIGHTS = np.array([0.05, 0.1, 0.15, 0.15, 0.25, 0.3])
"""Their weights. Small ratios have little: they are for many values, which pay for it. Large ones have so
much that four values a side, five and six suffice at 1/33, 1/132 and 1/296: what the first commits with
fresh boots may spend, the parents among them. Of suspects with one parent the second has 1/296."""

COMPARISON_POWER = 0.9
"""`needed` plans for this power, the usual choice beside 0.8."""


def hodges_lehmann(a: Floats, b: Floats) -> float:
    """Return the median of all differences b - a (Hodges and Lehmann 1963). SciPy has no such function."""
    a, b = _thinned(a, b)
    return float(np.median(b[:, None] - a))


def fewest(alpha: float) -> int:
    """Return the fewest groups a side that can be significant, two-sided: 2/C(2n,n) <= alpha."""
    n = 1
    while not exact_possible(n, n, alpha):
        n += 1
    return n


def exact_possible(n: int, m: int, alpha: float) -> bool:
    """Return whether the most extreme split of n + m groups is rarer than alpha."""
    return bool(2 / special.binom(n + m, n) <= alpha)


def rank_sum_p(a: Floats, b: Floats, random: np.random.Generator) -> float:
    """Return the two-sided p-value of Wilcoxon's rank-sum test.

    Without ties the null distribution is exact. With ties the midranks themselves are permuted: over all
    splits, or over RESAMPLES random ones. The observed split counts as one of the random ones (Phipson and
    Smyth 2010), so p is never zero. More than MAX_RESAMPLED_GROUPS groups: the normal approximation with the
    correction for ties.
    """
    from scipy import stats  # takes half a second, which a planner need not wait for

    pooled = np.concatenate([a, b])
    n, total = len(a), len(pooled)
    if pooled.min() == pooled.max():
        return 1.0
    if total > MAX_RESAMPLED_GROUPS:
        return float(stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False).pvalue)
    if len(np.unique(pooled)) == total:
        return float(stats.mannwhitneyu(a, b, method="exact").pvalue)
    ranks = stats.rankdata(pooled)
    if (
        min(n, total - n) == 1
    ):  # SciPy permutes two values a side or more; here each value may be the lone one
        distances = np.abs(ranks - (total + 1) / 2)
        return float((distances >= distances[0 if n == 1 else -1]).mean())
    centre = n * (total + 1) / 2
    splits = math.comb(total, n)
    result = stats.permutation_test(
        (ranks[:n], ranks[n:]),
        lambda x, _y, axis: np.abs(x.sum(axis=axis) - centre),
        vectorized=True,
        alternative="greater",
        n_resamples=splits if splits <= MAX_COUNTED_SPLITS else RESAMPLES,
        rng=random,
    )
    return float(result.pvalue)


def exact_interval(a: Floats, b: Floats, alpha: float) -> tuple[float, float]:
    """Return the interval of the shift b - a that inverts the rank-sum test (Moses; Lehmann 1975, ch. 2).

    Its ends are order statistics of all differences. It covers at least 1 - alpha where `exact_possible`.
    SciPy gives the p-values of this test but neither its interval nor its null distribution.
    """
    n, m = len(a), len(b)
    few, many = _thinned(a, b)
    differences = np.sort((many[:, None] - few).ravel())
    if n * m <= MAX_COUNTED_PAIRS:
        counts = _u_counts(n, m)
        below = np.cumsum(counts) / counts.sum()
        k = int(np.searchsorted(below, alpha / 2, side="right"))
    else:
        z = float(special.ndtri(1 - alpha / 2))
        k = int(n * m / 2 - z * math.sqrt(n * m * (n + m + 1) / 12))
    k = max(k * len(differences) // (n * m), 1)
    return float(differences[k - 1]), float(differences[len(differences) - k])


def welch(a: Floats, b: Floats, alpha: float) -> tuple[float, float, float]:
    """Return (low, high, p) of the difference of means b - a by Welch's t test.

    Two equal constants give p 1, two different constants p 0: an exact clock has no spread.
    """
    from scipy import stats  # takes half a second, which a planner need not wait for

    if np.ptp(a) == np.ptp(b) == 0:
        return t_interval(float(b[0] - a[0]), 0.0, math.inf, alpha)
    with warnings.catch_warnings():  # one constant side is no loss of precision here
        warnings.simplefilter("ignore", RuntimeWarning)
        result = stats.ttest_ind(b, a, equal_var=False)
        ends = result.confidence_interval(1 - alpha)
    return float(ends.low), float(ends.high), float(result.pvalue)


def t_interval(shift: float, error: float, freedom: float, alpha: float) -> tuple[float, float, float]:
    """Return (low, high, p) of a shift with a standard error; freedom inf is the normal distribution."""
    if error <= 0:
        return shift, shift, 1.0 if shift == 0 else 0.0
    half = error * float(special.stdtrit(freedom, 1 - alpha / 2))
    return shift - half, shift + half, 2 * float(special.stdtr(freedom, -abs(shift) / error))


def bootstrap_ratio(a: Floats, b: Floats, alpha: float, random: np.random.Generator) -> tuple[float, float]:
    """Return the percentile interval of mean(b) / mean(a) - 1, each side resampled (Efron 1979).

    Samples whose base averages zero are left out. More than MAX_RESAMPLED_GROUPS groups: the delta method,
    whose normal approximation holds there, while resampling a million values takes minutes.
    """
    from scipy import stats  # takes half a second, which a planner need not wait for

    if len(a) + len(b) > MAX_RESAMPLED_GROUPS:
        over, under = float(b.mean()), float(a.mean())
        error = math.hypot(stats.sem(b) / under, over * stats.sem(a) / under**2)
        low, high, _ = t_interval(over / under - 1, error, math.inf, alpha)
        return low, high
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        drawn = stats.bootstrap(
            (b, a), _relative_change, n_resamples=RESAMPLES, method="percentile", rng=random
        ).bootstrap_distribution
    low, high = np.nanquantile(drawn, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def needed(spread: float, change: float, alpha: float) -> int:
    """Return how many groups a side show a relative change nine times in ten, given their relative spread.

    The normal approximation 2 (z_alpha/2 + z_0.9)^2 (spread / change)^2, over 3/pi for ranks (the relative
    efficiency of Wilcoxon's test, Lehmann 1975), and never fewer than `fewest`.
    """
    if change <= 0:
        return fewest(alpha)
    z = float(special.ndtri(1 - alpha / 2) + special.ndtri(COMPARISON_POWER))
    return max(fewest(alpha), math.ceil(2 * (z * spread / change) ** 2 * math.pi / 3))


def _relative_change(b: Floats, a: Floats, axis: int) -> Floats:
    base = a.mean(axis=axis)
    return np.asarray(b.mean(axis=axis) / np.where(base == 0, np.nan, base) - 1)


def _thinned(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return both sides, or as many of their quantiles as keep the differences below MAX_DIFFERENCES."""
    if len(a) * len(b) <= MAX_DIFFERENCES:
        return a, b
    most = math.isqrt(MAX_DIFFERENCES)
    places = (np.arange(most) + 0.5) / most
    # Of sorted values thousands of quantiles are had in a tenth of the time.
    small = [x if len(x) <= most else np.quantile(np.sort(x), places) for x in (a, b)]
    return small[0], small[1]


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


def log_e_larger(values: Floats, later: Mask, block: Ints) -> float:
    """Return the log e-value for 'the values of the later group are larger', by ranks alone.

    If the groups do not differ, each new value is equally likely to take any place among the earlier ones,
    whatever its distribution: heavy tails, two modes, steps. The e-value is the probability of the order of
    labels under proportional hazards (the ranking model of Luce 1959 and Plackett 1975, the alternatives of
    Savage 1956) over that under equal hazards. Without one item such a ranking follows the same model, so
    the ratio is a martingale: it ever exceeds 1/alpha with probability at most alpha (Ville 1939).

    values: (V,); later: (V,) mask of that group; block: (V,) values compare within a block only. Equal values
    are ordered against the claim, so that ties give no evidence.
    """
    total = np.zeros(2 * len(HAZARD_RATIOS))
    for b in np.unique(block):
        mine = block == b
        order = np.lexsort((~later[mine], values[mine]))  # among equal values the later group comes first
        labels = later[mine][order]
        total += math.lgamma(len(labels) + 1)
        rising = _log_probability(labels, 1 / HAZARD_RATIOS)
        falling = _log_probability(labels[::-1], HAZARD_RATIOS)
        total += np.concatenate([rising, falling])
    top = float(total.max())
    weight = np.concatenate([HAZARD_WEIGHTS, HAZARD_WEIGHTS]) / 2
    return top + math.log(float(np.exp(total - top) @ weight))


def _log_probability(labels: Mask, hazard: Floats) -> Floats:
    """Return the log probability (H,) of an order of labels. hazard: (H,) of True ones; False have 1."""
    ones = np.cumsum(labels[::-1])[::-1]
    zeros = np.arange(len(labels), 0, -1) - ones
    at_risk = zeros[:, None] + ones[:, None] * hazard
    result: Floats = labels.sum() * np.log(hazard) - np.log(at_risk).sum(axis=0)
    return result
