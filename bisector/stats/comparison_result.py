"""The result of comparing one metric of two sets; which of many results are more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bisector.model.decisions import Interval
from bisector.model.format import signed
from bisector.model.goal import Direction
from bisector.stats.outliers import Outlier

Verdict = Literal["worse", "better", "same", "unclear", "untested"]
Method = Literal["exact", "welch", "published", "none"]


@dataclass(frozen=True, slots=True)
class SetSummary:
    """One set in numbers. boots, runs: how many; sd: of single runs; cv: sd / |mean|, 0 where mean is 0.

    error: relative standard error of the mean; None for a single value that was published without one.
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
    """How b differs from a.

    effect: relative change of the number (0.35 = it rises by 35%), Hodges-Lehmann, with its interval;
    infinite limits mean that there is none. mean: the same of the arithmetic mean, with a bootstrap interval.
    plain: the effect in the metric's unit. p: two-sided, None where nothing could be tested. group_counts:
    how many independent groups each side has. verdict: 'same' means that the interval excludes the threshold;
    word: what the change means, in words.
    """

    name: str
    unit: str
    better: Direction
    a: SetSummary
    b: SetSummary
    effect: Interval
    mean: Interval
    plain: Interval
    p: float | None
    method: Method
    group_counts: tuple[int, int]
    verdict: Verdict
    significant: bool
    word: str
    outliers: tuple[tuple[Outlier, ...], tuple[Outlier, ...]] = ((), ())
    warnings: tuple[str, ...] = ()


def relative_change(comparison: Comparison) -> float:
    """Return the relative change that counts: of the means where nothing could be tested."""
    return (comparison.mean if comparison.verdict == "untested" else comparison.effect).estimate


def size(comparison: Comparison, *, mean: bool = False) -> str:
    """Return the change that counts, or that of the mean: '+2.10%'; from a level of 0 in the unit."""
    mean = mean or comparison.verdict == "untested"
    change = comparison.mean.estimate if mean else comparison.effect.estimate
    if math.isfinite(change):
        return f"{100 * change:+.2f}%"
    more = comparison.b.mean - comparison.a.mean if mean else comparison.plain.estimate
    return signed(more, comparison.unit)


def beyond_chance(found: Sequence[Comparison], alpha: float) -> list[Comparison]:
    """Return the significant comparisons that stay so among all that were tested, in their order.

    Of k tests those with the s smallest p are kept, for the largest s with p_(s) <= alpha s / k (Benjamini
    and Hochberg 1995). Where nothing differs anything is kept with probability alpha at most (Simes 1986),
    for independent metrics and for such as move together (Sarkar 1998). A single test is kept at alpha.
    """
    p = sorted(one.p for one in found if one.p is not None)
    kept = max((s for s, value in enumerate(p, start=1) if value <= alpha * s / len(p)), default=0)
    return [one for one in found if kept and one.significant and one.p is not None and one.p <= p[kept - 1]]


def by_chance_alone(found: Sequence[Comparison], alpha: float) -> str:
    """Return what a reader of so many comparisons must know; '' where none is expected by chance."""
    tested = sum(one.p is not None for one in found)
    expected = round(alpha * tested)
    if not expected:
        return ""
    which = f"{expected} of them {'is' if expected == 1 else 'are'}"
    return (
        f"{tested} comparisons, each with an error of {alpha:.2g} by itself: where nothing differs, about "
        f"{which} shown to differ"
    )
