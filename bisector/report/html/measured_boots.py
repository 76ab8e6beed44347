"""The samples of a bisection by commit and boot, and the level of each commit with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from bisector.model.decisions import Interval
from bisector.report.report_model import Material, Trial
from bisector.report.trials import scales


@dataclass(frozen=True)
class MeasuredBoot:
    """One boot with values. number: of its trial, from 1; samples, warmups, flagged: values of its runs.

    levelled: the samples without what their repetition explains, where levels are compared.
    Where several testbeds measured, values are scaled so that the older end has the same level on each.
    """

    number: int
    trial: Trial
    samples: tuple[float, ...]
    levelled: tuple[float, ...]
    warmups: tuple[float, ...]
    flagged: tuple[float, ...]

    @property
    def commit(self) -> int:
        """The commit that was booted."""
        return self.trial.booted.commit

    @property
    def counts(self) -> bool:
        """Whether its samples count."""
        return bool(self.samples) and not self.trial.discarded and not self.trial.failure


@dataclass(frozen=True)
class MeanLevel:
    """The mean of a commit's boots. interval: None where no commit has two boots, so that it is unknown."""

    commit: int
    mean: float
    interval: Interval | None
    boots: int
    samples: int


def measured_boots(material: Material) -> list[MeasuredBoot]:
    """Return every boot that has a value, in the order they were started."""
    factors = scales(material)
    out = []
    for number, trial in enumerate(material.trials, start=1):
        factor = factors.get(trial.booted.testbed, 1.0)

        def kept(values: Iterable[float], factor: float = factor) -> tuple[float, ...]:
            return tuple(factor * v for v in values if math.isfinite(v))

        if trial.values:
            warmups = (v for _, v, _, warmup in trial.values if warmup)
            flagged = (v for _, v, flags, warmup in trial.values if flags and not warmup)
            found = (kept(trial.samples), kept(trial.levelled), kept(warmups), kept(flagged))
            out.append(MeasuredBoot(number, trial, *found))
    return out


def levels(boots: Iterable[MeasuredBoot], alpha: float) -> list[MeanLevel]:
    """Return the level of each commit in the order of history, with intervals at the level 1 - alpha.

    The boot is the independent unit. The standard deviation of boot means is pooled over all commits:
    sqrt(sum of squares about each commit's mean / (boots - commits)), as in a one-way analysis of variance.
    """
    from bisector.stats.two_sample import t_interval

    means: dict[int, list[float]] = {}
    runs: dict[int, int] = {}
    for boot in boots:
        if boot.counts:
            means.setdefault(boot.commit, []).append(fmean(boot.levelled))
            runs[boot.commit] = runs.get(boot.commit, 0) + len(boot.samples)
    squares = sum((m - fmean(of)) ** 2 for of in means.values() for m in of)
    freedom = sum(len(of) - 1 for of in means.values())
    out = []
    for commit, of in sorted(means.items()):
        mean, interval = fmean(of), None
        if freedom:
            error = math.sqrt(squares / freedom / len(of))
            low, high, _ = t_interval(mean, error, freedom, alpha)
            interval = Interval(low, mean, high)
        out.append(MeanLevel(commit, mean, interval, len(of), runs[commit]))
    return out
