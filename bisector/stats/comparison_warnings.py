"""What a reader must know before believing a comparison, in words: thin data, outliers, odd values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bisector.stats import outliers, two_sample
from bisector.stats.outliers import Outlier
from bisector.stats.samples import Series
from bisector.stats.two_sample import Floats

if TYPE_CHECKING:
    from bisector.stats.comparison import Comparison

FEW_BOOTS = 3
"""Below three boots a side their spread is a guess."""


def warnings(
    result: Comparison,
    series: tuple[Series, Series],
    units: tuple[Floats, Floats],
    threshold: float,
    alpha: float,
) -> tuple[str, ...]:
    """Return what a reader must know before believing the numbers."""
    found = []
    thing = "boot" if min(result.a.boots, result.b.boots) > 1 else "run"
    for side, given, parts in zip((result.a, result.b), series, units, strict=True):
        dropped = sum(1 for boot in given.boots for v in boot if not math.isfinite(v))
        if dropped:
            found.append(f"{side.name}: {dropped} values are no finite numbers and left out")
        if given.published:
            if given.error is None:
                found.append(
                    f"{side.name}: means of {side.runs} runs without their spread: nothing can be tested"
                )
            continue
        if result.significant:
            continue
        need = two_sample.needed(_spread(parts), threshold, alpha)
        if len(parts) < need:
            goal = f"{100 * threshold:g}% at this spread" if threshold else f"a test at {100 * alpha:g}%"
            found.append(
                f"{side.name}: {len(parts)} {thing}{'s' if len(parts) != 1 else ''}: need {need} for {goal}"
            )
    for side, given in zip((result.a, result.b), series, strict=True):
        found += _two_groups(side.name, given, result.unit)
    one = min(result.a.boots, result.b.boots)
    if not any(s.published for s in series) and one < FEW_BOOTS and max(result.units) > 1:
        found.append(
            "all runs are of one boot: what boots differ by is not in the interval"
            if one == 1
            else f"{one} boots a side: {FEW_BOOTS} or more tell what boots scatter from what the kernel does"
        )
    if min(result.a.low, result.b.low) <= 0:
        found.append("values at or below zero: differences are compared, in percent of the base's median")
    if result.a.sd == result.b.sd == 0 and min(result.a.runs, result.b.runs) > 1 and not series[0].published:
        found.append("all values of a side are equal: exact repetition, or a clock too coarse to tell")
    return tuple(found)


def named(found: tuple[Sequence[Outlier], ...], unit: str, labels: tuple[str, str]) -> list[str]:
    """Return one sentence for each outlier, by value and place."""
    said = []
    for label, some in zip(labels, found, strict=True):
        for o in some:
            boot = f"boot {o.boot}, " if any(x.boot > 1 for x in some) else ""
            said.append(
                f"{label}: {o.value:g}{' ' + unit if unit else ''} ({boot}run {o.run}) is an outlier, "
                f"{o.distance:.0f} robust standard deviations off; it is kept, ranks bear it"
            )
    return said


def _two_groups(name: str, series: Series, unit: str) -> list[str]:
    """Say that a set falls into two groups, outliers aside: then no single number describes it."""
    split = outliers.groups(outliers.without(series.boots, outliers.find(series.boots)))
    if split is None:
        return []
    of = f" {unit}" if unit else ""
    parts = " and ".join(
        f"{n} near {mean:.5g}{of}" for n, mean in zip(split.counts, split.means, strict=True)
    )
    why = "; each boot is in one of them" if split.by_boot else ""
    return [f"{name}: the runs fall into two groups, {parts}{why}: a mean describes neither"]


def _spread(units: Floats) -> float:
    """Return the relative spread of units; robust where there are enough of them, as the rank test is."""
    centre = float(np.median(units))
    if centre == 0 or len(units) < 2:
        return 0.0
    if len(units) < outliers.FEWEST:
        return float(units.std(ddof=1)) / abs(centre)
    return 1.4826 * float(np.median(np.abs(units - centre))) / abs(centre)
