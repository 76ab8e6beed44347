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
from scipy.special import stdtrit

from bisector.errors import RequestError
from bisector.model.records import Interval
from bisector.stats.bimodality import Modes, find_modes
from bisector.stats.variance_components import (
    VarianceComponents,
    components,
    correlation,
    false_alarms,
    runs_per_boot,
    smallest_effect,
)

Floats = NDArray[np.float64]

_OUTLIER = 5.0
"""Robust deviations: of a million normal values less than one lies so far out."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of the commit. values: one a run, in order; at: seconds since the epoch, parallel."""

    testbed: str
    values: tuple[float, ...]
    at: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What a calibration tells a later bisection: the noise, and mean seconds of a boot and of a run."""

    library: VarianceComponents
    boot_seconds: float
    run_seconds: float


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

    def library(self) -> VarianceComponents:
        """Return the variance components as the planner's prior."""
        return VarianceComponents(self.run_sd.estimate, self.run_df, self.boot_sd.estimate, self.boot_df)

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
    modes = find_modes(groups)
    related = correlation(groups)
    # A spread between boots that was not seen is not known to be zero: its upper limit is what may be there.
    per_boot = runs_per_boot(run_sd.estimate, boot_sd.estimate or boot_sd.high, boot_cost, run_cost)
    table = tuple(
        (b, k, smallest_effect(run_sd.estimate, boot_sd.estimate, b, k, alpha))
        for b in (2, 4, 8, 16)
        for k in sorted({1, 5, 20, per_boot})
    )
    naive, alarms = false_alarms(groups, alpha, random)
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
    if abs(related) > 0.3:
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
        correlation=related,
        outliers=outliers,
        modes=modes,
        naive_alarms=naive,
        alarms=alarms,
        runs_per_boot=per_boot,
        smallest=table,
        warnings=tuple(warnings),
    )


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
