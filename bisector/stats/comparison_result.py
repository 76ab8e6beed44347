"""The result of comparing one metric of two sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bisector.model.decisions import Interval
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
