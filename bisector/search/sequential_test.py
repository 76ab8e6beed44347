"""The sequential comparison of two sides: e-values and the effect with its interval, valid at any time.

The evidence for a change is a ratio of marginal likelihoods with a prior for the effect that is fixed before
the data: a mixture sequential test (Robbins 1970), an e-process (Ramdas et al. 2023). It may be looked at
after every run: under 'no change' it ever exceeds 1/alpha with probability at most alpha. The unknown spreads
between boots and between binaries are integrated over the same grid under both hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bisector.model.dag import Floats
from bisector.search.effect_interval import interval_at_stop, log_sum
from bisector.stats import two_sample
from bisector.stats.grouping import average_cells, group_combinations

RUN_NOISE_STEPS = (-1.5, -0.75, 0.0, 0.75, 1.5)
"""Values of the log run noise that are integrated over, in units of its standard error sqrt(1 / (2 df))."""
BELOW_THRESHOLD_POINTS = np.concatenate([[0.3, 0.0, -0.3], -(2.0 ** (np.arange(16) / 2))])
"""Prior points for an effect below the threshold, in thresholds. A choice: mostly none, or a gain, of any
size: had the largest gain two thresholds, a clear one of four would fit this prior no better than a loss that
two unlucky code layouts hide, and the more boots, the longer would the comparison go on."""
BELOW_THRESHOLD_WEIGHTS = np.concatenate(
    [[0.08, 0.42, 0.2], [0.14, 0.02, 0.05], np.full(6, 0.01), np.full(7, 0.03 / 7)]
)
"""Their weights, which sum to one."""
WIDTH_PER_GAP = 0.6
"""Standard deviation of the parts of an effect's prior, in distances of their means: their sum is smooth."""


@dataclass(frozen=True, slots=True)
class Side:
    """The boots of one side, arrays (B,). location, precision, testbed: as in Readings; boot_ratio: of the
    boot's testbed; binary: index, 0 first."""

    location: Floats
    precision: Floats
    binary: NDArray[np.int64]
    testbed: NDArray[np.int64]
    boot_ratio: Floats


@dataclass(frozen=True, slots=True)
class SpreadHypothesis:
    """Standard deviations between boots and between binaries, in worse units, with their weight."""

    boot: float
    binary: float
    weight: float


@dataclass(frozen=True, slots=True)
class EffectPrior:
    """A prior for the effect in worse units: a mixture of normal ones, which overlap.

    points, weights, widths: (E,) means, weights that sum to one, and standard deviations. Without widths an
    effect between two points that is known precisely would have no probability.
    """

    points: Floats
    weights: Floats
    widths: Floats


@dataclass(frozen=True)
class Evidence:
    """The result of a comparison.

    log_e_change, log_e_below: log e-values against 'no change' and against 'the threshold or more'. Where
    boots scatter more than the runs in them explain, the former is at most what the boots' order supports.
    estimate: the effect in worse units; sd: its standard deviation; interval: returns the ends of its
    1 - alpha interval, a third of a comparison's time, which few decisions need. The estimate is not shrunk
    as the interval is, so it may lie above the middle. p_reaches_threshold: P(effect >= threshold).
    boot_spreads: possible standard deviations between boots, with their weights.
    """

    log_e_change: float
    log_e_below: float
    estimate: float
    sd: float
    interval: Callable[[], tuple[float, float]] = field(compare=False)
    p_reaches_threshold: float
    boot_spreads: tuple[tuple[float, float], ...] = ()

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._ends[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._ends[1]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self.interval()


def broad_effect_prior(threshold: float) -> EffectPrior:
    """Return the prior for an effect of which only the threshold is known.

    Log-uniform from one to sixteen thresholds, with a tenth of the weight beyond, up to a thousand: a
    threshold says little about the size of the loss. A two-hundredth is for all that there is beyond that:
    the least threshold is a hundred-millionth of the level, so a change of the level is 2^27 of it.
    """
    parts = [
        (0.9, np.array([2.0 ** (k / 2) for k in range(9)])),
        (0.095, np.array([2.0**k for k in range(5, 11)])),
        (0.005, np.array([2.0**k for k in range(11, 31)])),
    ]
    weights = np.concatenate([np.full(len(points), share / len(points)) for share, points in parts])
    points = np.concatenate([points for _, points in parts]) * threshold
    return EffectPrior(points, weights, WIDTH_PER_GAP * np.gradient(points))


def estimated_effect_prior(mean: float, sd: float, threshold: float) -> EffectPrior:
    """Return the prior for an effect that the search has estimated.

    Normal with twice the variance, and `broad_effect_prior` with a tenth of the weight for heavier tails.
    """
    z = np.linspace(-2.0, 2.0, 9)
    spread = max(sd, 0.02 * abs(mean)) * math.sqrt(2.0)
    points = mean + z * spread
    weights = np.exp(-0.5 * z**2) * (np.sign(points) == np.sign(mean))
    wide = broad_effect_prior(threshold)
    return EffectPrior(
        np.concatenate([points, wide.points * math.copysign(1.0, mean)]),
        np.concatenate([0.9 * weights / weights.sum(), 0.1 * wide.weights]),
        np.concatenate([np.full(len(z), WIDTH_PER_GAP * (z[1] - z[0]) * spread), wide.widths]),
    )


def _difference(
    before: Side, after: Side, boot: Floats, binary: Floats, stretch: Floats, resolution: float
) -> tuple[Floats, Floats, Floats]:
    """Return the difference, its variance, log likelihood of the scatter, each (G,), for G hypotheses.

    Each testbed has a level of its own, about which nothing is known, and each binary an offset of its own,
    the same on all testbeds. Both are integrated out in closed form (restricted maximum likelihood: Patterson
    and Thompson 1971). So boots that only tell a testbed's level do not count as evidence of little scatter.
    """
    names, testbed = np.unique(np.concatenate([before.testbed, after.testbed]), return_inverse=True)
    first = int(before.binary.max()) + 1
    unit = np.concatenate([before.binary, first + after.binary])
    location, precision, ratio = (
        np.concatenate([getattr(before, name), getattr(after, name)])
        for name in ("location", "precision", "boot_ratio")
    )
    (of_unit, of_testbed), cell = group_combinations(unit, testbed)
    a = 1.0 / ((boot[:, None] * ratio) ** 2 + stretch[:, None] ** 2 / precision)
    y, total, log = average_cells(a, location, cell)
    w = 1.0 / (1.0 / total + resolution**2)
    if len(names) == 1:
        d, v, scatter = _difference_on_one(y, 1.0 / (1.0 / w + binary[:, None] ** 2), first)
        return d, v, log + scatter
    units = int(unit.max()) + 1
    weight = np.zeros((len(w), units, len(names)))
    weight[:, of_unit, of_testbed] = w
    value = np.zeros_like(weight)
    value[:, of_unit, of_testbed] = y
    level_weight = weight.sum(axis=1)
    value -= ((weight * value).sum(axis=1) / level_weight)[:, None, :]
    moment = (weight * value).sum(axis=2)
    residual = (weight * value**2).sum(axis=(1, 2))
    info = weight.sum(axis=2)[:, :, None] * np.eye(units)
    info -= (weight / level_weight[:, None, :]) @ weight.transpose(0, 2, 1)
    variance = binary[:, None, None] ** 2
    joint = np.eye(units) + variance * info
    shrunk = np.linalg.solve(joint, np.concatenate([info, moment[:, :, None]], axis=2))
    later = (np.arange(units) >= first).astype(float)
    known = shrunk[:, :, :-1] @ later @ later
    score = shrunk[:, :, -1] @ later
    residual -= binary**2 * (moment * shrunk[:, :, -1]).sum(axis=1)
    log += 0.5 * (np.log(w).sum(axis=1) - np.log(level_weight).sum(axis=1) - np.log(known))
    log -= 0.5 * (np.linalg.slogdet(joint)[1] + residual - score**2 / known)
    return score / known, 1.0 / known, log


def _difference_on_one(value: Floats, precision: Floats, first: int) -> tuple[Floats, Floats, Floats]:
    """Return what `_difference` does for binaries of one testbed: it has one level, so nothing is solved for.

    value, precision: (G, U) of each binary, its own offset included; first: the first one of `after`.
    """
    sides = slice(None, first), slice(first, None)
    total = np.stack([precision[:, side].sum(axis=1) for side in sides])
    mean = np.stack([(precision * value)[:, side].sum(axis=1) for side in sides]) / total
    later = (np.arange(value.shape[1]) >= first).astype(int)
    residual = (precision * (value - mean[later].T) ** 2).sum(axis=1)
    log = 0.5 * (np.log(precision).sum(axis=1) - np.log(total).sum(axis=0) - residual)
    return mean[1] - mean[0], (1.0 / total).sum(axis=0), log


def _log_e_order(before: Side, after: Side, sign: float) -> float:
    """Return the log e-value of the order of all boots for 'after is larger', or smaller for a negative sign.

    The model says that boots scatter like normal values. A few boots cannot show that: they may have two
    modes. What their order says holds for scatter of any shape.
    """
    location, testbed = (
        np.concatenate([getattr(before, name), getattr(after, name)]) for name in ("location", "testbed")
    )
    later = np.arange(len(location)) >= len(before.location)
    return two_sample.log_e_larger(sign * location, later, testbed)


def compare_sides(
    before: Side,
    after: Side,
    spreads: Sequence[SpreadHypothesis],
    run_df: float,
    effect_prior: EffectPrior,
    *,
    threshold: float,
    resolution: float,
    alpha: float,
    boots_scatter: bool | None = None,
) -> Evidence:
    """Compare two sides, each of at least one boot. run_df: degrees of freedom of the run noise.

    boots_scatter: whether they are known to, by more than their runs explain; None where that is to be seen.
    """
    width = 1.0 / math.sqrt(2.0 * max(run_df, 1.0))
    steps = np.array(RUN_NOISE_STEPS)
    boot, binary, weight = (
        np.repeat(np.array([getattr(x, name) for x in spreads]), len(steps))
        for name in ("boot", "binary", "weight")
    )
    z = np.tile(steps, len(spreads))
    d, v, scatter = _difference(before, after, boot, binary, np.exp(z * width), resolution)
    w = np.log(np.maximum(weight, 1e-12)) - 0.5 * z * z + scatter
    w -= log_sum(w)

    def likelihood(points: Floats, share: Floats, widths: Floats | float = 0.0) -> float:
        wide = v[:, None] + widths**2
        density = -0.5 * (d[:, None] - points) ** 2 / wide - 0.5 * np.log(wide)
        return log_sum(w[:, None] + density + np.log(np.maximum(share, 1e-300)))

    one = np.ones(1)
    none = likelihood(np.zeros(1), one)
    at_threshold = likelihood(np.array([threshold]), one)
    small = likelihood(BELOW_THRESHOLD_POINTS * threshold, BELOW_THRESHOLD_WEIGHTS)
    posterior = np.exp(w)
    estimate = float(posterior @ d)
    sd = math.sqrt(float(posterior @ (v + (d - estimate) ** 2)))
    above = float((1 - ndtr((threshold - d) / np.sqrt(v))) @ posterior)
    log_e_change = likelihood(effect_prior.points, effect_prior.weights, effect_prior.widths) - none
    # The median boot: one that counts as an outlier has a tiny precision, and would hide the scatter.
    by_runs = math.sqrt(float(np.median(1 / np.concatenate([before.precision, after.precision]))))
    if boots_scatter is None:
        # Of one boot a side only the prior speaks, and it says exactly 0.5: rounding is not to decide.
        boots_scatter = float(posterior[boot > by_runs].sum()) > 0.5 + 1e-9
    if boots_scatter:
        sign = math.copysign(1.0, float(effect_prior.points @ effect_prior.weights))
        log_e_change = min(log_e_change, _log_e_order(before, after, sign))
    return Evidence(
        log_e_change=log_e_change,
        log_e_below=small - at_threshold,
        estimate=estimate,
        sd=sd,
        interval=partial(interval_at_stop, w, d, v, threshold, alpha),
        p_reaches_threshold=above,
        boot_spreads=tuple((float(b), float(posterior[boot == b].sum())) for b in np.unique(boot)),
    )
