"""A/A analysis: what repeated measurements of one commit say about a testbed and a workload.

Runs of several boots of one build give the variance components, slow drift, modes and outliers. From those
follow the smallest effect that a number of runs can show, and how to spend time between boots and runs. All
numbers are relative to the metric's level (0.01 = 1%); log ratios where every value is positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bisector.errors import RequestError
from bisector.model.dag import Floats
from bisector.model.decisions import Interval
from bisector.stats import bimodality, outliers
from bisector.stats.bimodality import Modes
from bisector.stats.variance_components import (
    VarianceComponents,
    components,
    correlation,
    runs_per_boot,
    smallest_effect,
)

MAX_RUNS_PER_BOOT = 64
"""Runs in a boot are never recommended beyond what a bisection allows by default."""
RANDOM_SPLITS = 400
"""Random splits for the false alarm rate. The rate then has a standard error of about 1%."""
MIN_CALIBRATION_BOOTS = 6
"""Fewest boots without a warning: with fewer the 95% limits of the spread between boots are more than a
factor of four apart."""
MAX_CORRELATION = 0.3
"""Largest correlation of neighbouring runs without a warning. At 0.3 they are worth half as many independent
ones: (1 - r) / (1 + r) = 0.54."""


@dataclass(frozen=True, slots=True)
class AABoot:
    """One boot of the commit. values: one a run, in order; at: seconds since the epoch, parallel."""

    testbed: str
    values: tuple[float, ...]
    at: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What later bisections learn from a calibration: the noise, and mean seconds of a boot and of a run."""

    noise: VarianceComponents
    boot_seconds: float
    run_seconds: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of an A/A measurement; standard deviations and effects relative to `level`.

    boots, runs: how many were measured; run_sd, boot_sd: variance components with 95% limits; run_df,
    boot_df: their degrees of freedom; drift: change per hour, None with fewer than four boots; drifts: it
    is not zero; correlation: between neighbouring runs of a boot; outliers: how many runs lie far off the
    others; naive_alarms: how often two halves of the very same data are called different at `alpha` when
    runs count as independent; alarms: the same when boots do; runs_per_boot: best use of the time; smallest:
    effect shown by (boots a side, runs a boot) with power 95%; warnings: in words.
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

    def variance_components(self) -> VarianceComponents:
        """Return the variance components as the planner's prior."""
        return VarianceComponents(self.run_sd.estimate, self.run_df, self.boot_sd.estimate, self.boot_df)

    def smallest_effect(self, boots: int, runs: int) -> float:
        """Return the effect that so many boots a side with so many runs each show with power 95%."""
        return smallest_effect(self.run_sd.estimate, self.boot_sd.estimate, boots, runs, self.alpha)


def calibrate(
    boots: Sequence[AABoot],
    random: np.random.Generator,
    *,
    alpha: float = 0.05,
    boot_cost: float,
    run_cost: float,
    by_repetition: bool = False,
) -> Calibration:
    """Analyse an A/A measurement of at least two boots with two runs. Costs are seconds.

    by_repetition: compare repetition k with repetition k only (the instruction clock, where the repetitions
    of a boot differ by a pattern that every boot repeats).

    Raises RequestError for too little data or values that are not finite.
    """
    kept = _usable(boots)
    values, level = _relative(kept)
    if by_repetition:
        values = _without_pattern(values)
    drift = _drift(kept, values)
    drifts = drift is not None and not drift.low <= 0.0 <= drift.high
    if drift is not None and drifts:  # references tell the planner of steady drift; it is no boot effect
        hours = [np.asarray(b.at, dtype=float) / 3600.0 for b in kept]
        start = float(np.mean(np.concatenate(hours)))
        values = [v - drift.estimate * (h - start) for v, h in zip(values, hours, strict=True)]
    run_sd, run_df, boot_sd, boot_df = components(values)
    # Around 1, not 0: outliers and modes have bounds relative to the level.
    far = outliers.find([(1.0 + v - np.median(v)).tolist() for v in values])
    modes = bimodality.find([(1.0 + v).tolist() for v in values])
    related = correlation(values)
    # Where no spread between boots was seen it may still exist: then its upper limit is used.
    likely_boot_sd = boot_sd.estimate or boot_sd.high
    per_boot = runs_per_boot(boot_cost, run_cost, [(likely_boot_sd, 1.0)], run_sd.estimate, MAX_RUNS_PER_BOOT)
    table = tuple(
        (b, k, smallest_effect(run_sd.estimate, boot_sd.estimate, b, k, alpha))
        for b in (2, 4, 8, 16)
        for k in sorted({1, 5, 20, per_boot})
    )
    naive, alarms = false_alarms(values, alpha, random)
    made = Calibration(
        level=level,
        boots=len(kept),
        runs=sum(map(len, values)),
        alpha=alpha,
        run_sd=run_sd,
        run_df=run_df,
        boot_sd=boot_sd,
        boot_df=boot_df,
        drift=drift,
        drifts=drifts,
        correlation=related,
        outliers=len(far),
        modes=modes,
        naive_alarms=naive,
        alarms=alarms,
        runs_per_boot=per_boot,
        smallest=table,
        warnings=(),
    )
    return replace(made, warnings=tuple(_warnings(made)))


def _usable(boots: Sequence[AABoot]) -> list[AABoot]:
    """Return the boots that have runs. Raises RequestError for too little data or what is not finite."""
    kept = [b for b in boots if b.values]
    if len(kept) < 2 or sum(len(b.values) > 1 for b in kept) < 2:
        raise RequestError(
            "an A/A measurement needs at least two boots with two runs each", cure="measure more boots"
        )
    if not all(math.isfinite(v) for b in kept for v in b.values):
        raise RequestError(
            "an A/A measurement holds a value that is not a finite number", cure="leave that run out"
        )
    return kept


def _without_pattern(values: Sequence[Floats]) -> list[Floats]:
    """Return the values of each boot less the median, over all boots, of their repetition."""
    longest = max(len(v) for v in values)
    pattern = [float(np.median([v[k] for v in values if len(v) > k])) for k in range(longest)]
    return [v - np.array(pattern[: len(v)]) for v in values]


def _warnings(made: Calibration) -> Iterator[str]:
    """Yield what a reader of the figures has to know."""
    if made.boots < MIN_CALIBRATION_BOOTS:
        yield (
            f"only {made.boots} boots: the spread between boots is hardly known; "
            f"need >= {MIN_CALIBRATION_BOOTS}"
        )
    if made.run_sd.estimate == 0 and made.boot_sd.estimate == 0:
        yield "all values are equal: either the clock is exact, or the metric does not move"
    if made.drifts:
        yield "the testbed drifts: compare interleaved, and measure references"
    if modes := made.modes:
        what = "boots" if modes.by_boot else "runs"
        yield f"the {what} have two modes, {100 * (modes.high - modes.low):.2g}% apart"
    if abs(made.correlation) > MAX_CORRELATION:
        yield "neighbouring runs depend on one another: they say less than they seem to"
    if made.outliers:
        yield f"{made.outliers} of {made.runs} runs lie far off the others of their boot"


def false_alarms(
    boots: Sequence[Floats], alpha: float, random: np.random.Generator
) -> tuple[float | None, float | None]:
    """Return how often random halves of the boots differ 'significantly' by Welch's test: by runs, by boots.

    None with fewer than four boots.
    """
    if len(boots) < 4:
        return None, None
    orders = np.array([random.permutation(len(boots)) for _ in range(RANDOM_SPLITS)])
    half = len(boots) // 2
    sizes = np.array([float(len(b)) for b in boots])
    means = np.array([b.mean() for b in boots])
    squares = np.array([((b - b.mean()) ** 2).sum() for b in boots])

    def of_runs(part: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        """Return (mean, sd, number) of all runs of some boots, each (RANDOM_SPLITS,)."""
        n = sizes[part].sum(axis=1)
        mean = (sizes[part] * means[part]).sum(axis=1) / n
        total = squares[part].sum(axis=1) + (sizes[part] * (means[part] - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(total / (n - 1)), n

    def of_boots(part: NDArray[np.intp]) -> tuple[Floats, Floats, int]:
        """Return the same of the means of those boots."""
        return means[part].mean(axis=1), means[part].std(axis=1, ddof=1), part.shape[1]

    from scipy import stats  # takes half a second, which a planner without a calibration need not wait for

    rates = []
    for describe in (of_runs, of_boots):
        halves = (*describe(orders[:, :half]), *describe(orders[:, half:]))
        with np.errstate(all="ignore"):  # halves without spread give p 0 or, if they are equal, NaN: no alarm
            p = stats.ttest_ind_from_stats(*halves, equal_var=False).pvalue
        rates.append(float((p < alpha).mean()))
    return rates[0], rates[1]


def _relative(boots: Sequence[AABoot]) -> tuple[list[Floats], float]:
    """Return each boot's values relative to the common level, and that level."""
    values = np.concatenate([np.asarray(b.values, dtype=float) for b in boots])
    if (values > 0).all():
        level = float(np.exp(np.log(values).mean()))
        return [np.log(np.asarray(b.values, dtype=float) / level) for b in boots], level
    level = float(values.mean())
    if level == 0:
        raise RequestError(
            "the values average zero, so nothing can be said relative to their level",
            cure="choose a metric whose values have one sign",
        )
    return [np.asarray(b.values, dtype=float) / abs(level) - math.copysign(1.0, level) for b in boots], level


def _drift(boots: Sequence[AABoot], values: Sequence[Floats]) -> Interval | None:
    """Return the change per hour of the boots' medians by least squares; each testbed has its own level."""
    time = np.array([float(np.mean(b.at)) for b in boots]) / 3600.0
    mean = np.array([float(np.median(v)) for v in values])
    names = {b.testbed for b in boots}
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
