"""Two sets of samples side by side: what differs, by how much, and how certain that is.

Runs of one boot are not independent. Where both sides have several boots, the groups that are compared are
boots (the medians of their runs), else the runs of the one boot. The effect is the Hodges-Lehmann shift of
log ratios where all values are positive, of plain differences otherwise. Beside it stands the change of the
mean, which is what most people report. The interval is exact (the inverted rank-sum test) where there are
enough groups for a test, Welch's with two or three a side, and none with one. Published means are compared by
their published errors. Few data raise no error: the result carries warnings in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bisector.model.dag import Floats
from bisector.model.decisions import Interval
from bisector.model.goal import Direction, worse_sign
from bisector.stats import comparison_warnings, outliers, two_sample
from bisector.stats.comparison_result import Comparison, Method, SetSummary, Verdict, size
from bisector.stats.samples import SampleSeries, direction, word

Pair = tuple[Floats, Floats]
"""The groups of both sides."""

MAX_LOG_RATIO = 700.0
"""Largest logarithm of a ratio: exp of more (709) is beyond the range of a float, and counts as infinite."""


def summarise(name: str, series: SampleSeries) -> SetSummary:
    """Return a set in numbers. Raises ValueError where there is no finite value."""
    values = np.array(series.values)
    if not len(values):
        raise ValueError(f"{name}: there is no finite value to compare")
    mean = math.fsum(values) / len(values)
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    error = series.error
    if error is not None and series.repeats > 1:
        sd = abs(mean) * error * math.sqrt(series.repeats)
    elif error is None and len(values) > 1 and mean:
        error = sd / abs(mean) / math.sqrt(len(values))
    return SetSummary(
        name=name,
        boots=sum(1 for boot in series.boots if boot),
        runs=series.repeats if series.published and series.repeats else len(values),
        mean=mean,
        median=float(np.median(values)),
        sd=sd,
        cv=sd / abs(mean) if mean else 0.0,
        low=float(values.min()),
        high=float(values.max()),
        error=error,
    )


def compare(
    name: str,
    a: SampleSeries,
    b: SampleSeries,
    *,
    threshold: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
    labels: tuple[str, str] = ("a", "b"),
    summaries: tuple[SetSummary, SetSummary] | None = None,
) -> Comparison:
    """Compare one metric of two sets.

    threshold: the smallest relative change that matters, 0 for any; seed: of the random splits and resamples;
    summaries: of both, where they were made already. Raises ValueError where a side has no finite value.
    """
    if summaries is None:
        summaries = summarise(labels[0], a), summarise(labels[1], b)
    labels = summaries[0].name, summaries[1].name
    result, groups = _compare(name, a, b, summaries, threshold, alpha, seed)
    found = (outliers.find(a.boots), outliers.find(b.boots))
    clean = tuple(
        replace(s, boots=outliers.without(s.boots, o)) if o else s for s, o in zip((a, b), found, strict=True)
    )
    warnings = comparison_warnings.warnings(result, (a, b), (clean[0], clean[1]), groups, threshold, alpha)
    if any(found):
        warnings += comparison_warnings.describe_outliers(found, result.unit, labels)
        others = summarise(labels[0], clean[0]), summarise(labels[1], clean[1])
        again, _ = _compare(name, clean[0], clean[1], others, threshold, alpha, seed)
        outcome = (
            "the conclusion is the same" if again.verdict == result.verdict else "THE CONCLUSION CHANGES"
        )
        warnings.append(
            f"without {'them' if sum(map(len, found)) > 1 else 'it'}: {size(again)} "
            f"({again.word}; mean {size(again, mean=True)}), {outcome}"
        )
    return replace(result, outliers=found, warnings=tuple(warnings))


def _compare(
    name: str,
    a: SampleSeries,
    b: SampleSeries,
    summaries: tuple[SetSummary, SetSummary],
    threshold: float,
    alpha: float,
    seed: int,
) -> tuple[Comparison, Pair]:
    """Return the comparison without outliers and warnings, and the groups of both sides."""
    better = direction(name, a if a.better is not None else b if b.better is not None else a)
    by_boot = min(s.boots for s in summaries) > 1
    groups = _groups(a, by_boot), _groups(b, by_boot)
    compared = groups
    if a.published or b.published:  # a mean can be compared with a mean only
        compared = np.array([summaries[0].mean]), np.array([summaries[1].mean])
    log = min(s.low for s in summaries) > 0
    scaled = (np.log(compared[0]), np.log(compared[1])) if log else compared
    random = np.random.default_rng(seed)
    shift = two_sample.hodges_lehmann(*scaled)
    method, low, high, p = _test(scaled, (a, b), summaries, log, shift, alpha, random)
    low, high = min(low, shift), max(high, shift)
    base = 1.0 if log else abs(summaries[0].median)

    def relative(v: float) -> float:
        if log:
            return math.expm1(v) if v < MAX_LOG_RATIO else math.inf
        return v / base if base else math.copysign(math.inf, v) if v else 0.0

    effect = Interval(relative(low), relative(shift), relative(high))
    plain = Interval(low, shift, high)
    if log:
        scale = summaries[0].median
        plain = Interval(scale * effect.low, scale * effect.estimate, scale * effect.high)
    significant = p is not None and p <= alpha and (low > 0 or high < 0)
    result = Comparison(
        name=name,
        unit=a.unit or b.unit,
        better=better,
        a=summaries[0],
        b=summaries[1],
        effect=effect,
        mean=_mean_change(compared, summaries, alpha, random),
        plain=plain,
        p=p,
        method=method,
        group_counts=(len(compared[0]), len(compared[1])),
        verdict=_verdict(effect, better, threshold, significant) if p is not None else "untested",
        significant=significant,
        word=word(effect.estimate, name, a if a.unit else b, better),
    )
    return result, groups


def _test(
    scaled: Pair,
    series: tuple[SampleSeries, SampleSeries],
    summaries: tuple[SetSummary, SetSummary],
    log: bool,
    shift: float,
    alpha: float,
    random: np.random.Generator,
) -> tuple[Method, float, float, float | None]:
    """Return (method, low, high, p) of the shift, in logs or plain as `scaled` is."""
    n, m = len(scaled[0]), len(scaled[1])
    if any(s.published for s in series):
        return _published_test(summaries, log, shift, alpha)
    if two_sample.exact_possible(n, m, alpha):
        p = two_sample.rank_sum_p(*scaled, random)
        return "exact", *two_sample.exact_interval(*scaled, alpha), p
    if min(n, m) > 1:
        return "welch", *two_sample.welch(*scaled, alpha)
    return "none", -math.inf, math.inf, None


def _published_test(
    summaries: tuple[SetSummary, SetSummary], log: bool, shift: float, alpha: float
) -> tuple[Method, float, float, float | None]:
    """Test by the published errors of both means, with Welch and Satterthwaite's degrees of freedom."""
    errors = []
    for summary in summaries:
        if summary.error is None:
            return "none", -math.inf, math.inf, None
        errors.append(summary.error if log else summary.error * abs(summary.mean))
    runs = [s.runs if s.runs > 1 else math.inf for s in summaries]  # one run: how many is not known
    total = math.hypot(*errors)
    spent = sum(e**4 / (k - 1) for e, k in zip(errors, runs, strict=True))
    freedom = total**4 / spent if spent else math.inf
    return "published", *two_sample.t_interval(shift, total, freedom, alpha)


def _mean_change(
    groups: Pair, summaries: tuple[SetSummary, SetSummary], alpha: float, random: np.random.Generator
) -> Interval:
    a, b = summaries[0].mean, summaries[1].mean
    if a == 0:
        return Interval(-math.inf, math.copysign(math.inf, b) if b else 0.0, math.inf)
    change = (b - a) / abs(a)
    if min(map(len, groups)) < 2:
        return Interval(-math.inf, change, math.inf)
    low, high = two_sample.bootstrap_ratio(*groups, alpha, random)
    if a < 0:
        low, high = -high, -low
    return Interval(min(low, change), change, max(high, change))


def _verdict(effect: Interval, better: Direction, threshold: float, significant: bool) -> Verdict:
    worse = worse_sign(better)
    low, high = sorted((worse * effect.low, worse * effect.high))
    if significant and high >= threshold:  # a significant interval lies on one side of zero
        return "worse"
    if significant and low <= -threshold:
        return "better"
    if max(abs(low), abs(high)) < threshold or (low == high == 0.0):
        return "same"
    return "unclear"


def _groups(series: SampleSeries, by_boot: bool) -> Floats:
    """Return what is independent: medians of boots where there are several, else all runs."""
    if not by_boot:
        return np.array(series.values)
    finite: list[Sequence[float]] = [[v for v in boot if math.isfinite(v)] for boot in series.boots]
    return np.array([float(np.median(boot)) for boot in finite if boot])
