"""Variance components of runs and boots, and what follows: effects shown, runs a boot, false alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri, ndtri, stdtr

from bisector.model.records import Interval

Floats = NDArray[np.float64]

POWER = 0.95
"""An effect counts as showable when 19 of 20 comparisons show it."""
MOST_RUNS = 64
"""Runs a boot are never recommended beyond what a bisection allows in a boot."""
_SPLITS = 400
"""Random splits for the false alarm rate: its own error is then about 1%."""


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Variance components from an A/A measurement, as fractions of the level. df: degrees of freedom."""

    run_sd: float
    run_df: float
    boot_sd: float
    boot_df: float


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


def correlation(groups: Sequence[Floats]) -> float:
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


def false_alarms(
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
