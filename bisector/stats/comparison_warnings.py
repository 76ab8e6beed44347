"""Warnings about a comparison, in words: few data, outliers, odd values."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from bisector.model.dag import Floats
from bisector.model.format import count
from bisector.stats import bimodality, outliers, two_sample
from bisector.stats.comparison_result import Comparison
from bisector.stats.outliers import Outlier
from bisector.stats.samples import SampleSeries

MIN_BOOTS_PER_SIDE = 3
"""Below three boots a side the spread between boots is a guess: its 95% limits are a factor of 70 apart."""

MAX_NAMED_OUTLIERS = 10
"""Outliers of a side that are described one by one; heavy tails of many runs have thousands."""


def warnings(
    result: Comparison,
    series: tuple[SampleSeries, SampleSeries],
    without_outliers: tuple[SampleSeries, SampleSeries],
    groups: tuple[Floats, Floats],
    threshold: float,
    alpha: float,
) -> list[str]:
    """Return what a reader must know before believing the numbers.

    groups: of both sides, before means took the place of runs.
    """
    found = []
    kind = "boot" if min(result.a.boots, result.b.boots) > 1 else "run"
    for summary, given, own in zip((result.a, result.b), series, groups, strict=True):
        dropped = sum(map(len, given.boots)) - len(given.values)
        if dropped:
            found.append(f"{summary.name}: {dropped} values are no finite numbers and left out")
        if given.published:
            if given.error is None:
                found.append(
                    f"{summary.name}: means of {summary.runs} runs without their spread: "
                    "nothing can be tested"
                )
            continue
        if result.significant:
            continue
        need = two_sample.needed(_relative_sd(own), threshold, alpha)
        if len(own) < need:
            goal = f"{100 * threshold:g}% at this spread" if threshold else f"a test at {100 * alpha:g}%"
            found.append(f"{summary.name}: {count(len(own), kind)}: need {need} for {goal}")
    for summary, given in zip((result.a, result.b), without_outliers, strict=True):
        found += _describe_modes(summary.name, given, result.unit)
    boots = min(result.a.boots, result.b.boots)
    one_boot = [summary.name for summary in (result.a, result.b) if summary.boots == 1]
    of_one = f" of {one_boot[0]}" if len(one_boot) == 1 else ""
    unpublished = not any(s.published for s in series)
    if unpublished and boots < MIN_BOOTS_PER_SIDE and max(result.group_counts) > 1:
        found.append(
            f"all runs{of_one} are of one boot: what boots differ by is not in the interval"
            if boots == 1
            else f"{_boots_of(result)}: {MIN_BOOTS_PER_SIDE} or more tell what boots scatter "
            "from what the kernel does"
        )
    if min(result.a.low, result.b.low) <= 0:
        found.append(
            "values at or below zero: differences are compared, in percent of the base's median"
            if result.a.median
            else "the base's median is 0, of which there are no percentages: each change is in the metric's "
            "unit"
        )
    if unpublished and result.a.sd == result.b.sd == 0 and min(result.a.runs, result.b.runs) > 1:
        found.append("all values of a side are equal: exact repetition, or a clock too coarse to tell")
    return found


def _boots_of(result: Comparison) -> str:
    a, b = result.a.boots, result.b.boots
    return f"{a} boots a side" if a == b else f"{a} and {b} boots of the sides"


def describe_outliers(found: tuple[Sequence[Outlier], ...], unit: str, labels: tuple[str, str]) -> list[str]:
    """Return a sentence for each outlier, by value and place; the farthest MAX_NAMED_OUTLIERS of a side."""
    out = []
    for label, some in zip(labels, found, strict=True):
        several_boots = any(o.boot > 1 for o in some)
        farthest = set(heapq.nlargest(MAX_NAMED_OUTLIERS, some, key=lambda o: o.distance))
        for o in (o for o in some if o in farthest):
            boot = f"boot {o.boot}, " if several_boots else ""
            out.append(
                f"{label}: {o.value:g}{' ' + unit if unit else ''} ({boot}run {o.run}) is an outlier, "
                f"{o.distance:.0f} robust standard deviations off; it is kept, ranks bear it"
            )
        if len(some) > len(farthest):
            out.append(f"{label}: {len(some) - len(farthest)} more outliers, nearer than these")
    return out


def _describe_modes(name: str, series: SampleSeries, unit: str) -> list[str]:
    """Say that a set has two modes: then no single number describes it."""
    modes = bimodality.find(series.boots)
    if modes is None:
        return []
    of = f" {unit}" if unit else ""
    parts = " and ".join(
        f"{n} near {mean:.5g}{of}" for n, mean in zip(modes.counts, (modes.low, modes.high), strict=True)
    )
    why = "; each boot is in one of them" if modes.by_boot else ""
    return [f"{name}: the runs fall into two groups, {parts}{why}: a mean describes neither"]


def _relative_sd(groups: Floats) -> float:
    """Return the relative spread of groups; robust where there are enough of them, as the rank test is."""
    centre = float(np.median(groups))
    if centre == 0 or len(groups) < 2:
        return 0.0
    robust = len(groups) >= outliers.MIN_VALUES
    return (outliers.robust_sd(groups) if robust else float(groups.std(ddof=1))) / abs(centre)
