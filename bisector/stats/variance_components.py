"""Variance components of runs and boots, and what follows: the effect that can be shown, runs in a boot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, fdtri, ndtri

from bisector.model.dag import Floats
from bisector.model.decisions import Interval

CALIBRATION_POWER = 0.95
"""An effect counts as detectable when 19 of 20 comparisons show it."""


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Variance components from an A/A measurement, as fractions of the level. df: degrees of freedom."""

    run_sd: float
    run_df: float
    boot_sd: float
    boot_df: float


def components(boots: Sequence[Floats]) -> tuple[Interval, float, Interval, float]:
    """Return run sd, its df, boot sd, its df by one-way analysis of variance (Searle 1971, unbalanced).

    The limits are 95%: chi squared for runs, Tukey and Williams' F limits for boots.
    """
    sizes = np.array([len(b) for b in boots], dtype=float)
    total, count = float(sizes.sum()), len(boots)
    means = np.array([b.mean() for b in boots])
    grand = float((sizes * means).sum() / total)
    inside, between = total - count, count - 1.0
    within = sum(float(((b - m) ** 2).sum()) for b, m in zip(boots, means, strict=True)) / inside
    across = float((sizes * (means - grand) ** 2).sum()) / between
    n0 = (total - float((sizes**2).sum()) / total) / between
    run = Interval(
        math.sqrt(inside * within / float(chdtri(inside, 0.025))),
        math.sqrt(within),
        math.sqrt(inside * within / float(chdtri(inside, 0.975))),
    )

    def boot_sd(f: float) -> float:
        return math.sqrt(max(0.0, (across / f - within) / n0))

    boot = Interval(
        boot_sd(float(fdtri(between, inside, 0.975))),
        boot_sd(1.0),
        boot_sd(float(fdtri(between, inside, 0.025))),
    )
    return run, inside, boot, between


def smallest_effect(run_sd: float, boot_sd: float, boots: int, runs: int, alpha: float) -> float:
    """Return the difference shown with power 95% by a two-sided test at alpha, boots and runs a side."""
    one_side = (boot_sd**2 + run_sd**2 / runs) / boots
    return float(ndtri(1 - alpha / 2) + ndtri(CALIBRATION_POWER)) * math.sqrt(2 * one_side)


def runs_per_boot(
    boot_cost: float, run_cost: float, boot_sds: Sequence[tuple[float, float]], run_sd: float, most: int
) -> int:
    """Return the runs in each boot, 1 to most, that are expected to give the most precision per cost.

    m runs in a boot give 1 / (sb^2 + sr^2 / m) for b + m r; where the sd sb between boots is known that is
    largest at m = sqrt(b sr^2 / (r sb^2)). boot_sds: the possible sb, with weights that sum to one.
    """
    if run_sd == 0:
        return 1
    if boot_cost <= 0 and run_cost <= 0:
        return most
    m = np.arange(1, most + 1)
    sd, weight = np.array(boot_sds).T
    precision = weight @ (1.0 / (sd[:, None] ** 2 + run_sd**2 / m))
    return int(m[np.argmax(precision / (boot_cost + m * run_cost))])


def correlation(boots: Sequence[Floats]) -> float:
    """Return the correlation of neighbouring runs, corrected for the boots' estimated means (+1/n)."""
    pairs, squares, count, used = 0.0, 0.0, 0, 0
    for b in boots:
        if len(b) < 3:
            continue
        z = b - b.mean()
        pairs += float((z[1:] * z[:-1]).sum())
        squares += float((z**2).sum())
        count += len(b)
        used += 1
    return min(1.0, pairs / squares + used / count) if squares else 0.0
