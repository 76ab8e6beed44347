"""Two sets of samples side by side: what differs, by how much, and how far it can be believed.

Runs of one boot are not independent, so where both sides have several boots, boots (the median of their runs)
are the units that are compared, else the runs of the one boot are. The effect is the Hodges-Lehmann shift of
log ratios where all values are positive, of plain differences otherwise; beside it stands the change of the
mean, which is what most people report. The interval is exact (the inverted rank-sum test) where the number of
units allows a test at all, Welch's with two or three, and none with one. Published means with their +-% are
compared by those. Nothing raises for thin data: the result carries warnings in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bisector.model.records import Direction, Interval
from bisector.stats import comparison_warnings, outliers, two_sample
from bisector.stats.outliers import Outlier
from bisector.stats.samples import Series, direction, word
from bisector.stats.two_sample import Floats, hodges_lehmann

__all__ = ["Comparison", "Method", "Summary", "compare", "compare_series", "hodges_lehmann", "summarise"]

Boots = Sequence[Sequence[float]]
Verdict = Literal["worse", "better", "same", "unclear", "untested"]
Method = Literal["exact", "welch", "published", "none"]


@dataclass(frozen=True, slots=True)
class Summary:
    """One set in numbers. boots, runs: how many; sd: of single runs; cv: sd / |mean|, 0 where mean is 0.

    error: relative standard error of the mean; None where there is one value and nobody published any.
    """

    name: str
    boots: int
    runs: int
    mean: float
    median: float
    sd: float
    cv: float
    low: float
    high: float
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What b is, compared with a.

    effect: relative change of the number (0.35 = it rises by 35%), Hodges-Lehmann, with its interval;
    infinite limits mean that there is none. mean: the same of the arithmetic mean, with a bootstrap interval.
    plain: the effect in the metric's unit. p: two-sided, None where nothing could be tested. units: how many
    were compared a side.
    verdict: 'same' means that the interval excludes the threshold; word: what the change means, in words.
    """

    name: str
    unit: str
    better: Direction
    a: Summary
    b: Summary
    effect: Interval
    mean: Interval
    plain: Interval
    p: float | None
    method: Method
    units: tuple[int, int]
    verdict: Verdict
    significant: bool
    word: str
    outliers: tuple[tuple[Outlier, ...], tuple[Outlier, ...]] = ((), ())
    warnings: tuple[str, ...] = ()


def summarise(name: str, series: Series | Boots) -> Summary:
    """Return a set in numbers. Raises ValueError where there is no finite value."""
    given = series if isinstance(series, Series) else Series(_tuples(series))
    values = np.array(given.values)
    if not len(values):
        raise ValueError(f"{name}: there is no finite value to compare")
    mean = math.fsum(values) / len(values)
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    error = given.error
    if error is not None and given.repeats > 1:
        sd = abs(mean) * error * math.sqrt(given.repeats)
    elif error is None and len(values) > 1 and mean:
        error = sd / abs(mean) / math.sqrt(len(values))
    return Summary(
        name,
        sum(1 for b in given.boots if len(b)),
        given.repeats if given.published and given.repeats else len(values),
        mean,
        float(np.median(values)),
        sd,
        sd / abs(mean) if mean else 0.0,
        float(values.min()),
        float(values.max()),
        error,
    )


def compare(
    name: str,
    a: Boots,
    b: Boots,
    *,
    unit: str = "",
    better: Direction = "lower",
    threshold: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
    labels: tuple[str, str] = ("a", "b"),
) -> Comparison:
    """Compare two sets of boots, each a list of runs; see `compare_series`."""
    sides = (Series(_tuples(a), unit, better), Series(_tuples(b), unit, better))
    return compare_series(name, *sides, threshold=threshold, alpha=alpha, seed=seed, labels=labels)


def compare_series(
    name: str,
    a: Series,
    b: Series,
    *,
    threshold: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
    labels: tuple[str, str] = ("a", "b"),
) -> Comparison:
    """Compare one metric of two sets.

    threshold: the smallest relative change that matters, 0 for any; seed: of what is drawn at random. Raises
    ValueError where a side has no finite value.
    """
    result = _compare(name, a, b, threshold, alpha, seed, labels)
    found = (outliers.find(a.boots), outliers.find(b.boots))
    several = min(result.a.boots, result.b.boots) > 1
    units = (_units(a, several), _units(b, several))
    warnings = list(comparison_warnings.warnings(result, (a, b), units, threshold, alpha))
    if any(found):
        warnings += comparison_warnings.named(found, result.unit, labels)
        fewer = [replace(s, boots=outliers.without(s.boots, o)) for s, o in zip((a, b), found, strict=True)]
        again = _compare(name, fewer[0], fewer[1], threshold, alpha, seed, labels)
        said = "the conclusion is the same" if again.verdict == result.verdict else "THE CONCLUSION CHANGES"
        warnings.append(
            f"without {'them' if sum(map(len, found)) > 1 else 'it'}: {100 * again.effect.estimate:+.2f}% "
            f"({again.word}; mean {100 * again.mean.estimate:+.2f}%), {said}"
        )
    return replace(result, outliers=found, warnings=tuple(warnings))


def _compare(
    name: str, a: Series, b: Series, threshold: float, alpha: float, seed: int, labels: tuple[str, str]
) -> Comparison:
    sides = summarise(labels[0], a), summarise(labels[1], b)
    better = direction(name, a if a.better is not None else b if b.better is not None else a)
    log = min(sides[0].low, sides[1].low) > 0
    base = 1.0 if log else abs(sides[0].median)
    several = min(s.boots for s in sides) > 1
    pair = [_units(s, several) for s in (a, b)]
    if a.published or b.published:  # a mean can be compared with a mean only
        pair = [np.array([side.mean]) for side in sides]
    moved = [np.log(x) if log else x for x in pair]
    random = np.random.default_rng(seed)
    shift = hodges_lehmann(*moved)
    method, low, high, p = _test(moved, (a, b), sides, log, shift, alpha, random)
    low, high = min(low, shift), max(high, shift)

    def relative(v: float) -> float:
        if log:
            return math.expm1(v) if v < 700 else math.inf
        return v / base if base else math.copysign(math.inf, v) if v else 0.0

    effect = Interval(relative(low), relative(shift), relative(high))
    if log:
        scale = sides[0].median
        plain = Interval(scale * effect.low, scale * effect.estimate, scale * effect.high)
    else:
        plain = Interval(low, shift, high)
    tested = p is not None
    significant = p is not None and p <= alpha and (low > 0 or high < 0)
    return Comparison(
        name,
        a.unit or b.unit,
        better,
        *sides,
        effect,
        _mean_change(pair, sides, several, alpha, random),
        plain,
        p,
        method,
        (len(pair[0]), len(pair[1])),
        _verdict(effect, better, threshold, significant) if tested else "untested",
        significant,
        word(effect.estimate, name, a if a.unit else b, better),
    )


def _test(
    moved: Sequence[Floats],
    series: tuple[Series, Series],
    sides: tuple[Summary, Summary],
    log: bool,
    shift: float,
    alpha: float,
    random: np.random.Generator,
) -> tuple[Method, float, float, float | None]:
    """Return (method, low, high, p) of the shift, in logs or plain as `moved` is."""
    n, m = len(moved[0]), len(moved[1])
    if any(s.published for s in series):
        errors = [side.error for side in sides]
        if errors[0] is None or errors[1] is None:
            return "none", -math.inf, math.inf, None
        parts = [e if log else e * abs(s.mean) for e, s in zip((errors[0], errors[1]), sides, strict=True)]
        runs = [s.runs if s.runs > 1 else math.inf for s in sides]
        total = math.hypot(*parts)
        spent = sum(e**4 / (k - 1) for e, k in zip(parts, runs, strict=True))
        return "published", *two_sample.around(shift, total, total**4 / spent if spent else math.inf, alpha)
    if two_sample.exact_possible(n, m, alpha):
        p = two_sample.permutation_p(moved[0], moved[1], random)
        return "exact", *two_sample.exact_interval(moved[0], moved[1], alpha), p
    if min(n, m) > 1:
        return "welch", *two_sample.welch(moved[0], moved[1], alpha)
    return "none", -math.inf, math.inf, None


def _mean_change(
    pair: Sequence[Floats],
    sides: tuple[Summary, Summary],
    several: bool,
    alpha: float,
    random: np.random.Generator,
) -> Interval:
    a, b = sides[0].mean, sides[1].mean
    if a == 0:
        return Interval(-math.inf, math.copysign(math.inf, b) if b else 0.0, math.inf)
    change = (b - a) / abs(a)
    if min(map(len, pair)) < 2:
        return Interval(-math.inf, change, math.inf)
    low, high = two_sample.bootstrap_ratio(pair[0], pair[1], alpha, random)
    if a < 0:
        low, high = -high, -low
    return Interval(min(low, change), change, max(high, change))


def _verdict(effect: Interval, better: Direction, threshold: float, significant: bool) -> Verdict:
    worse = 1.0 if better == "lower" else -1.0
    low, high = sorted((worse * effect.low, worse * effect.high))
    if significant and low > 0 and high >= threshold:
        return "worse"
    if significant and high < 0 and low <= -threshold:
        return "better"
    if max(abs(low), abs(high)) < threshold or (low == high == 0.0):
        return "same"
    return "unclear"


def _units(series: Series, several: bool) -> Floats:
    """Return what is independent: medians of boots where there are several, else all runs."""
    if not several:
        return np.array(series.values)
    clean = [[v for v in boot if math.isfinite(v)] for boot in series.boots]
    return np.array([float(np.median(boot)) for boot in clean if boot])


def _tuples(boots: Boots) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(v) for v in runs) for runs in boots)
