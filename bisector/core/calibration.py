"""A/A: what one commit, measured again and again, says about a testbed and a workload.

Runs of several boots of one build give the variance components, slow drift, modes and outliers; from those
follow the smallest effect that a number of runs can show and how to spend time between boots and runs. All
is relative to the metric's level (0.01 = 1%); a log ratio where every value is positive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri, ndtri, stdtr, stdtrit

from bisector.core.model import Interval
from bisector.core.noise import Library
from bisector.errors import RequestError

Floats = NDArray[np.float64]

POWER = 0.95
"""An effect counts as showable when 19 of 20 comparisons show it."""
MOST_RUNS = 64
"""Runs a boot are never recommended beyond what a bisection allows in a boot."""
_OUTLIER = 5.0
"""Robust deviations: of a million normal values less than one lies so far out."""
_SEPARATE = 3.0
"""Modes closer than three of their own deviations overlap and cannot be told apart run by run."""
_STRONG_BIC = 10.0
"""Kass and Raftery (1995): a difference of 10 is very strong evidence."""
_SPLITS = 400
"""Random splits for the false alarm rate: its own error is then about 1%."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of the commit. values: one a run, in order; at: seconds since the epoch, parallel."""

    testbed: str
    values: tuple[float, ...]
    at: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes of the runs. low, high: relative to the level; share: of the higher one.

    by_boot: every boot stays in one mode, so a mode is something that a boot gets, like its memory layout.
    """

    low: float
    high: float
    share: float
    by_boot: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of an A/A measurement; standard deviations and effects relative to `level`.

    boots, runs: how many were measured; run_sd, boot_sd: variance components with 95% limits; run_df,
    boot_df: their degrees of freedom; drift: change per hour, None with fewer than four boots; drifts: it
    is not zero; correlation: between neighbouring runs of a boot; outliers: runs more than five robust
    deviations off; naive_alarms: how often two halves of the very same data are called different at `alpha`
    when runs count as independent; alarms: the same when boots do; runs_per_boot: best use of the time;
    smallest: effect shown by (boots a side, runs a boot) with power 95%; warnings: in words.
    """

    level: float
    boots: int
    runs: int
    alpha: float
    run_sd: Interval
    run_df: float
    boot_sd: Interval
    boot_df: float
    drift: Interval | None
    drifts: bool
    correlation: float
    outliers: int
    modes: Modes | None
    naive_alarms: float | None
    alarms: float | None
    runs_per_boot: int
    smallest: tuple[tuple[int, int, float], ...]
    warnings: tuple[str, ...]

    def library(self) -> Library:
        """Return the variance components as the planner's prior."""
        return Library(self.run_sd.estimate, self.run_df, self.boot_sd.estimate, self.boot_df)

    def smallest_effect(self, boots: int, runs: int) -> float:
        """Return the effect that so many boots a side with so many runs each show with power 95%."""
        return smallest_effect(self.run_sd.estimate, self.boot_sd.estimate, boots, runs, self.alpha)

    def boots_for(self, effect: float, most: int = 200) -> int | None:
        """Return the boots a side that show an effect with the recommended runs; None beyond `most`."""
        for boots in range(2, most + 1):
            if self.smallest_effect(boots, self.runs_per_boot) <= effect:
                return boots
        return None


def calibrate(
    boots: Sequence[Boot],
    random: np.random.Generator,
    *,
    alpha: float = 0.05,
    boot_cost: float = 0.0,
    run_cost: float = 1.0,
    by_repetition: bool = False,
) -> Calibration:
    """Analyse an A/A measurement of at least two boots with two runs. Costs are seconds.

    by_repetition: compare repetition k with repetition k only (the instruction clock, where the repetitions
    of a boot differ by a pattern that every boot repeats).

    Raises RequestError for too little data or values that are not finite.
    """
    kept = [b for b in boots if b.values]
    if len(kept) < 2 or sum(len(b.values) > 1 for b in kept) < 2:
        raise RequestError("an A/A measurement needs at least two boots with two runs each")
    if not all(math.isfinite(v) for b in kept for v in b.values):
        raise RequestError("an A/A measurement holds a value that is not a finite number")
    groups, level = _relative(kept)
    if by_repetition:
        longest = max(len(g) for g in groups)
        pattern = [float(np.median([g[k] for g in groups if len(g) > k])) for k in range(longest)]
        groups = [g - np.array(pattern[: len(g)]) for g in groups]
    drift = _drift(kept, groups)
    drifts = drift is not None and not drift.low <= 0.0 <= drift.high
    if drift is not None and drifts:  # what moves steadily is followed by references; it is no boot effect
        hours = [np.asarray(b.at, dtype=float) / 3600.0 for b in kept]
        start = float(np.mean(np.concatenate(hours)))
        groups = [g - drift.estimate * (h - start) for g, h in zip(groups, hours, strict=True)]
    run_sd, run_df, boot_sd, boot_df = components(groups)
    residuals = np.concatenate([g - np.median(g) for g in groups])
    mad = 1.4826 * float(np.median(np.abs(residuals)))
    outliers = int((np.abs(residuals) > _OUTLIER * mad).sum()) if mad else 0
    modes = _modes(groups)
    correlation = _correlation(groups)
    per_boot = runs_per_boot(run_sd.estimate, boot_sd.estimate, boot_cost, run_cost)
    table = tuple(
        (b, k, smallest_effect(run_sd.estimate, boot_sd.estimate, b, k, alpha))
        for b in (2, 4, 8, 16)
        for k in sorted({1, 5, 20, per_boot})
    )
    naive, alarms = _false_alarms(groups, alpha, random)
    warnings = []
    if len(kept) < 6:
        warnings.append(f"only {len(kept)} boots: the spread between boots is hardly known; need >= 6")
    if run_sd.estimate == 0 and boot_sd.estimate == 0:
        warnings.append("all values are equal: either the clock is exact, or the metric does not move")
    if drifts:
        warnings.append("the testbed drifts: compare interleaved, and measure references")
    if modes:
        what = "boots" if modes.by_boot else "runs"
        warnings.append(f"the {what} have two modes, {100 * (modes.high - modes.low):.2g}% apart")
    if abs(correlation) > 0.3:
        warnings.append("neighbouring runs depend on one another: they say less than they seem to")
    if outliers:
        warnings.append(f"{outliers} of {len(residuals)} runs lie far off the others of their boot")
    return Calibration(
        level=level,
        boots=len(kept),
        runs=len(residuals),
        alpha=alpha,
        run_sd=run_sd,
        run_df=run_df,
        boot_sd=boot_sd,
        boot_df=boot_df,
        drift=drift,
        drifts=drifts,
        correlation=correlation,
        outliers=outliers,
        modes=modes,
        naive_alarms=naive,
        alarms=alarms,
        runs_per_boot=per_boot,
        smallest=table,
        warnings=tuple(warnings),
    )


def components(groups: Sequence[Floats]) -> tuple[Interval, float, Interval, float]:
    """Return run sd, its df, boot sd, its df by one-way analysis of variance (Searle 1971, unbalanced).

    The limits are 95%: chi squared for runs, Tukey and Williams' F limits for boots.
    """
    sizes = np.array([len(g) for g in groups], dtype=float)
    total, count = float(sizes.sum()), len(groups)
    means = np.array([g.mean() for g in groups])
    grand = float((sizes * means).sum() / total)
    inside, between = total - count, count - 1.0
    within = sum(float(((g - m) ** 2).sum()) for g, m in zip(groups, means, strict=True)) / inside
    across = float((sizes * (means - grand) ** 2).sum()) / between
    n0 = (total - float((sizes**2).sum()) / total) / between
    run = Interval(
        math.sqrt(inside * within / float(chdtri(inside, 0.025))),
        math.sqrt(within),
        math.sqrt(inside * within / float(chdtri(inside, 0.975))),
    )

    def root(f: float) -> float:
        return math.sqrt(max(0.0, (across / f - within) / n0))

    boot = Interval(
        root(float(fdtri(between, inside, 0.975))), root(1.0), root(float(fdtri(between, inside, 0.025)))
    )
    return run, inside, boot, between


def smallest_effect(run_sd: float, boot_sd: float, boots: int, runs: int, alpha: float) -> float:
    """Return the difference shown with power 95% by a two-sided test at alpha, boots and runs a side."""
    one_side = (boot_sd**2 + run_sd**2 / runs) / boots
    return float(ndtri(1 - alpha / 2) + ndtri(POWER)) * math.sqrt(2 * one_side)


def runs_per_boot(run_sd: float, boot_sd: float, boot_cost: float, run_cost: float) -> int:
    """Return the runs a boot that waste the least time: sqrt(b sr^2 / (r sb^2)), between 1 and 64."""
    if run_sd == 0:
        return 1
    if boot_sd == 0 or run_cost <= 0:
        return MOST_RUNS
    return max(1, min(MOST_RUNS, round(math.sqrt(boot_cost / run_cost) * run_sd / boot_sd)))


def _relative(boots: Sequence[Boot]) -> tuple[list[Floats], float]:
    """Return each boot's values relative to the common level, and that level."""
    values = np.concatenate([np.asarray(b.values, dtype=float) for b in boots])
    if (values > 0).all():
        level = float(np.exp(np.log(values).mean()))
        return [np.log(np.asarray(b.values, dtype=float) / level) for b in boots], level
    level = float(values.mean())
    if level == 0:
        raise RequestError("the values average zero, so nothing can be said relative to their level")
    return [np.asarray(b.values, dtype=float) / abs(level) - math.copysign(1.0, level) for b in boots], level


def _drift(boots: Sequence[Boot], groups: Sequence[Floats]) -> Interval | None:
    """Return the slope of the boots' means per hour by least squares, testbeds having levels of their own."""
    time = np.array([float(np.mean(b.at)) for b in boots]) / 3600.0
    mean = np.array([float(np.median(g)) for g in groups])
    names = sorted({b.testbed for b in boots})
    free = len(boots) - len(names) - 1
    if free < 2:
        return None
    for name in names:
        mine = np.array([b.testbed == name for b in boots])
        time[mine] -= time[mine].mean()
        mean[mine] -= mean[mine].mean()
    spread = float((time**2).sum())
    if spread == 0:
        return None
    slope = float((time * mean).sum()) / spread
    error = math.sqrt(float(((mean - slope * time) ** 2).sum()) / free / spread)
    half = float(stdtrit(free, 0.975)) * error
    return Interval(slope - half, slope, slope + half)


def _correlation(groups: Sequence[Floats]) -> float:
    """Return the correlation of neighbouring runs, corrected for the boots' estimated means (+1/n)."""
    pairs, squares, count, boots = 0.0, 0.0, 0, 0
    for g in groups:
        if len(g) < 3:
            continue
        z = g - g.mean()
        pairs += float((z[1:] * z[:-1]).sum())
        squares += float((z**2).sum())
        count += len(g)
        boots += 1
    return max(-1.0, min(1.0, pairs / squares + boots / count)) if squares and count else 0.0


def _modes(groups: Sequence[Floats]) -> Modes | None:
    """Return two modes where a mixture of two normals of one width is far more plausible than one normal."""
    values = np.concatenate(list(groups))
    if len(values) < 12 or not values.std():
        return None
    low, high = (float(x) for x in np.percentile(values, (20, 80)))
    width, share = float(values.std()) / 2 or 1e-12, 0.5
    for _ in range(200):
        a = np.log(1 - share) - 0.5 * ((values - low) / width) ** 2
        b = np.log(share) - 0.5 * ((values - high) / width) ** 2
        weight = 1 / (1 + np.exp(np.clip(a - b, -700, 700)))
        upper = float(weight.sum())
        if not 1 <= upper <= len(values) - 1:
            return None
        share = upper / len(values)
        high = float((weight * values).sum() / upper)
        low = float(((1 - weight) * values).sum() / (len(values) - upper))
        spread = (1 - weight) * (values - low) ** 2 + weight * (values - high) ** 2
        width = max(math.sqrt(float(spread.mean())), 1e-12)
    n = len(values)
    one = -n * math.log(float(values.std())) - 0.5 * n
    mixture = np.logaddexp(
        math.log(1 - share) - 0.5 * ((values - low) / width) ** 2,
        math.log(share) - 0.5 * ((values - high) / width) ** 2,
    )
    two = float(mixture.sum()) - n * math.log(width)
    gain = 2 * (two - one) - 2 * math.log(n)  # two more parameters
    if gain < _STRONG_BIC or high - low < _SEPARATE * width or not 0.1 <= share <= 0.9:
        return None
    middle = (low + high) / 2
    sides = [float((g > middle).mean()) for g in groups]
    return Modes(low, high, share, all(s < 0.1 or s > 0.9 for s in sides))


def _false_alarms(
    groups: Sequence[Floats], alpha: float, random: np.random.Generator
) -> tuple[float | None, float | None]:
    """Return how often random halves of the boots differ 'significantly': by runs, and by boots."""
    if len(groups) < 4:
        return None, None
    means = np.array([g.mean() for g in groups])
    half = len(groups) // 2
    by_run = by_boot = 0
    for _ in range(_SPLITS):
        order = random.permutation(len(groups))
        one, other = order[:half], order[half:]
        runs = [np.concatenate([groups[i] for i in side]) for side in (one, other)]
        by_run += _differ(runs[0], runs[1], alpha)
        by_boot += _differ(means[one], means[other], alpha)
    return by_run / _SPLITS, by_boot / _SPLITS


def _differ(a: Floats, b: Floats, alpha: float) -> bool:
    """Return whether Welch's t test calls two samples different at alpha."""
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if va + vb == 0:
        return bool(a.mean() != b.mean())
    t = abs(float(a.mean() - b.mean())) / math.sqrt(va + vb)
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return 2 * float(stdtr(df, -t)) < alpha
