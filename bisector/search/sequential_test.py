"""Sequential comparison of two sides: has it changed, by how much, and how sure is that at any moment.

The evidence for a change is a ratio of marginal likelihoods with a prior for the effect that is fixed before
the data (a mixture sequential test: Robbins 1970; an e-process, Ramdas et al. 2023). It may be looked at
after every run: under 'no change' it exceeds 1/alpha with probability at most alpha. The unknown spreads
between boots and between binaries are integrated over the same grid under both hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]

RUN_NOISE_STEPS = (-1.5, -0.75, 0.0, 0.75, 1.5)
"""Run noise is known up to sqrt(1 / (2 df)) on the log scale; these many standard deviations are tried."""


@dataclass(frozen=True, slots=True)
class Side:
    """Boots of one side, arrays (B,): location and precision as in noise.Readings; binary: which build."""

    location: Floats
    precision: Floats
    binary: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpreadHypothesis:
    """One possible pair of standard deviations between boots and between binaries, with its weight."""

    boot: float
    unit: float
    weight: float


@dataclass(frozen=True, slots=True)
class EffectPrior:
    """A discrete prior for the effect in worse units: points (E,), weights (E,) that sum to one."""

    points: Floats
    weights: Floats


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a comparison says.

    change, less: log e-values against 'no change' and against 'the threshold or more'; low, estimate, high:
    the effect in worse units with its 1 - alpha interval; above: P(effect >= threshold); boots: the spreads
    between boots that are possible, with their weights.
    """

    change: float
    less: float
    low: float
    estimate: float
    high: float
    sd: float
    above: float
    boots: tuple[tuple[float, float], ...] = ()


def broad_effect_prior(threshold: float) -> EffectPrior:
    """Return the prior for an effect of which only the threshold is known.

    Log-uniform from one to sixteen thresholds, with a tenth beyond up to a thousand: a user's threshold says
    little about how large the loss is.
    """
    near = np.array([2.0 ** (k / 2) for k in range(9)])
    far = np.array([2.0**k for k in range(5, 11)])
    weights = np.concatenate([np.full(len(near), 0.9 / len(near)), np.full(len(far), 0.1 / len(far))])
    return EffectPrior(np.concatenate([near, far]) * threshold, weights)


def estimated_effect_prior(mean: float, sd: float, threshold: float) -> EffectPrior:
    """Return a prior for an effect that the search has estimated: normal with twice the variance, and heavier
    tails from `broad_effect_prior` with a tenth of the weight."""
    z = np.linspace(-2.0, 2.0, 9)
    points = mean + z * max(sd, 0.02 * abs(mean)) * math.sqrt(2.0)
    weights = np.exp(-0.5 * z**2) * (np.sign(points) == np.sign(mean))
    wide = broad_effect_prior(threshold)
    return EffectPrior(
        np.concatenate([points, wide.points * math.copysign(1.0, mean)]),
        np.concatenate([0.9 * weights / weights.sum(), 0.1 * wide.weights]),
    )


def _summary(
    side: Side, boot: Floats, unit: Floats, stretch: Floats, floor: float
) -> tuple[Floats, Floats, Floats]:
    """Return (mean, variance, log likelihood of the scatter), each (G,), of one side for G spreads."""
    a = 1.0 / (boot[:, None] ** 2 + stretch[:, None] ** 2 / side.precision)
    count = int(side.binary.max()) + 1
    member = np.zeros((len(side.binary), count))
    member[np.arange(len(side.binary)), side.binary] = 1.0
    total = a @ member
    y = (a * side.location) @ member / total
    rest = (a * (side.location - y[:, side.binary]) ** 2).sum(axis=1)
    log = -0.5 * (rest - np.log(a).sum(axis=1) + np.log(total).sum(axis=1))
    w = 1.0 / (1.0 / total + unit[:, None] ** 2 + floor**2)
    weight = w.sum(axis=1)
    mean = (w * y).sum(axis=1) / weight
    log += 0.5 * (np.log(w).sum(axis=1) - np.log(weight))
    log -= 0.5 * (w * (y - mean[:, None]) ** 2).sum(axis=1)
    return mean, 1.0 / weight, log


def _log_sum(values: Floats) -> float:
    """Return log(sum(exp(values))); scipy's own costs ten times as much for arrays this small."""
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


def compare_sides(
    before: Side,
    after: Side,
    spreads: Sequence[SpreadHypothesis],
    run_df: float,
    effects: EffectPrior,
    *,
    threshold: float,
    floor: float,
    alpha: float,
) -> Evidence:
    """Compare two sides that both have at least one boot."""
    width = 1.0 / math.sqrt(2.0 * max(run_df, 1.0))
    steps = np.array(RUN_NOISE_STEPS)
    boot, unit, weight = (
        np.repeat(np.array([getattr(x, name) for x in spreads]), len(steps))
        for name in ("boot", "unit", "weight")
    )
    z = np.tile(steps, len(spreads))
    m0, v0, l0 = _summary(before, boot, unit, np.exp(z * width), floor)
    m1, v1, l1 = _summary(after, boot, unit, np.exp(z * width), floor)
    d, v = m1 - m0, v0 + v1
    w = np.log(np.maximum(weight, 1e-12)) - 0.5 * z * z + l0 + l1
    w -= _log_sum(w)

    def likelihood(points: Floats, share: Floats) -> float:
        density = -0.5 * (d[:, None] - points) ** 2 / v[:, None] - 0.5 * np.log(v)[:, None]
        return _log_sum(w[:, None] + density + np.log(np.maximum(share, 1e-300)))

    one = np.ones(1)
    none = likelihood(np.zeros(1), one)
    at_threshold = likelihood(np.array([threshold]), one)
    small = likelihood(
        np.array([-2.0, -1.0, -0.3, 0.0, 0.3]) * threshold, np.array([0.1, 0.2, 0.2, 0.4, 0.1])
    )
    posterior = np.exp(w)
    estimate = float(posterior @ d)
    sd = math.sqrt(float(posterior @ (v + (d - estimate) ** 2)))
    grid = estimate + sd * np.linspace(-8, 8, 401)
    cdf = ndtr((grid[:, None] - d) / np.sqrt(v)) @ posterior
    low, high = np.interp([alpha / 2, 1 - alpha / 2], cdf, grid)
    above = float((1 - ndtr((threshold - d) / np.sqrt(v))) @ posterior)
    return Evidence(
        change=likelihood(effects.points, effects.weights) - none,
        less=small - at_threshold,
        low=float(low),
        estimate=estimate,
        high=float(high),
        sd=sd,
        above=above,
        boots=tuple((float(b), float(posterior[boot == b].sum())) for b in np.unique(boot)),
    )


def runs_per_boot(
    boot_cost: float, run_cost: float, boots: Sequence[tuple[float, float]], run_sd: float, most: int
) -> int:
    """Return the runs in each boot that are expected to give the most precision per cost.

    m runs in a boot give 1 / (sb^2 + sr^2 / m) for b + m r; where the spread sb between boots is known that
    is largest at m = sqrt(b sr^2 / (r sb^2)). boots: the spreads possible, with weights that sum to one.
    """
    m = np.arange(1, most + 1)
    spread, weight = np.array(boots).T
    precision = weight @ (1.0 / (spread[:, None] ** 2 + run_sd**2 / m))
    return int(m[np.argmax(precision / (boot_cost + m * run_cost))])
