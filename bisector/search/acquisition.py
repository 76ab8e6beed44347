"""The acquisition function: information about the culprits per second of expected cost.

Under each hypothesis (which class holds the culprit, or which two) a trial would read a normal distribution
(predictive.py). Measuring an end again is therefore an option like any other. The mutual information of
hypothesis and reading is approximated from the pairwise distances of these normals (Kolchinsky and Tracey
2017, with the exponent that is exact for small effects).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.model.dag import CommitDag, Floats
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.predictive import LevelPredictor, PredictedLevels

RUN_COUNTS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of runs that are considered for a visit."""
MAX_RUNS_LIVE_BOOT = 8
"""Most runs considered for a live boot: after them it is decided anew anyway."""
MIN_RATE_FRACTION = 0.3
"""Trials whose rate after the first two run counts is below this fraction of the best rate are not rated
further. Between neighbours in RUN_COUNTS a rate changes by a factor of two at most."""
EQUAL_RATE_FRACTION = 1e-4
"""Rates that differ by less than this fraction count as equal: bits are computed in single precision, and
what processors round differently must not choose a trial. At most this fraction of the rate is lost."""
EXACT_READING = 1e-3
"""Standard deviation, in thresholds, of a reading that counts as exact: no level is known so well."""
MIN_DENSITY = 1e-30
"""Replaces zero before a logarithm is taken; such entries have no weight."""


@dataclass(frozen=True, slots=True)
class TrialOption:
    """A possible trial.

    boot: the live boot to go on with, None for a new one; setup_seconds: build and boot, before the first
    run; built: whether its binary exists; live_precision: of the live boot's location so far.
    """

    commit: int
    layout: int
    boot: str | None
    setup_seconds: float
    built: bool
    live_precision: float | None = None


@dataclass(frozen=True, slots=True)
class RatedTrial:
    """An option with its best number of runs: expected bits, cost in seconds, P(the commit is bad)."""

    option: TrialOption
    runs: int
    bits: float
    cost: float
    bad_probability: float


class TrialRater:
    """Rates trials with one posterior."""

    def __init__(
        self,
        posterior: Posterior,
        dag: CommitDag,
        run_cost: float,
        proven: tuple[tuple[int, ...], ...] = (),
        testbed: int | None = None,
    ) -> None:
        """run_cost: seconds; testbed: index of the testbed that will measure, None if it is new."""
        self.posterior = posterior
        self.run_cost = run_cost
        self.predictor = LevelPredictor(posterior, dag, proven, testbed)
        readings = posterior.design.readings
        self.run_sd = readings.run_sd_on(testbed)
        self.boot_sd = posterior.noise_rms("boot") * readings.boot_ratio_on(testbed)

    def rate_trials(
        self, options: Sequence[TrialOption], most: int, discount: Callable[[int], float] | None = None
    ) -> list[RatedTrial]:
        """Return every option with its best number of runs, the best rate first.

        most: runs allowed in one boot; discount: commit -> factor (0..1) on its information. Information is
        concave in the runs and cost is linear, so their ratio has one peak. It is searched from the middle,
        and only for options that may have the highest rate of all.
        """
        factor = np.array([1.0 if discount is None else discount(o.commit) for o in options])
        predicted = self.predictor.levels([(o.commit, o.layout) for o in options])
        counts = [m for m in RUN_COUNTS if m <= most] or [1]
        live = np.array([o.live_precision is not None for o in options])
        top = np.where(live, sum(m <= MAX_RUNS_LIVE_BOOT for m in counts), len(counts)) - 1
        bits = np.full((len(options), len(counts)), np.nan)
        runs = np.array(counts, dtype=float)
        cost = np.array([o.setup_seconds for o in options])[:, None] + runs * self.run_cost
        middle = np.minimum(top, 2)
        for at in (middle, np.maximum(middle - 1, 0)):
            self._rate(bits, options, predicted, np.arange(len(options)), at, counts)
        while True:
            rate = np.nan_to_num(bits / np.maximum(cost, 1e-9), nan=-1.0)
            peak = rate.argmax(axis=1)
            value = rate.max(axis=1) * factor
            steps = []
            for i in np.flatnonzero(value >= MIN_RATE_FRACTION * value.max()).tolist():
                beside = (j for j in (peak[i] - 1, peak[i] + 1) if 0 <= j <= top[i])
                steps += [(i, j) for j in beside if np.isnan(bits[i, j])]
            if not steps:
                break
            rows, at = np.array(steps).T
            self._rate(bits, options, predicted, rows, at, counts)
        marginal = self.posterior.marginal
        total = max(float(marginal.sum()), 1e-12)
        result = []
        for i in _best_first(value):
            option, j = options[i], int(peak[i])
            bad = float(marginal @ self.predictor.shares(option.commit)) / total
            result.append(RatedTrial(option, counts[j], float(bits[i, j]), float(cost[i, j]), bad))
        return result

    def most_bits(self, options: Sequence[TrialOption]) -> float:
        """Return the most bits that reading the level of one of some commits exactly would bring."""
        predicted = self.predictor.levels([(o.commit, o.layout) for o in options])
        fine = (EXACT_READING * self.posterior.design.threshold) ** 2
        every = np.ones(len(options))
        return float(mutual_information(predicted, fine * every, every).max())

    def _rate(
        self,
        bits: Floats,
        options: Sequence[TrialOption],
        predicted: PredictedLevels,
        rows: NDArray[np.int64],
        at: NDArray[np.int64],
        counts: Sequence[int],
    ) -> None:
        """Compute the bits of the options `rows` with counts[at] runs each, where they are missing."""
        new = np.isnan(bits[rows, at])
        rows, at = rows[new], at[new]
        if not len(rows):
            return
        run = self.run_sd**2 / np.array([counts[j] for j in at])
        # In a live boot the boot offset is partly known already, so further runs say less about the level.
        precisions = [options[i].live_precision for i in rows]
        boot_variance = self.boot_sd**2
        shrink = np.array(
            [0.0 if x is None else boot_variance / max(boot_variance + 1 / x, 1e-300) for x in precisions]
        )
        noise = boot_variance * (1 - shrink) + run
        bits[rows, at] = mutual_information(predicted.rows(rows), noise, (1 - shrink) ** 2)


def _best_first(value: Floats) -> list[int]:
    """Return the indices of values (O,), the highest first; those that count as equal stay in their order."""
    left = np.argsort(-value, kind="stable")
    found: list[int] = []
    while len(left):
        equal = value[left] >= (1 - EQUAL_RATE_FRACTION) * value[left[0]]
        found += sorted(left[equal].tolist())
        left = left[~equal]
    return found


def under_way(context: SearchContext) -> list[int]:
    """Return the commits that other testbeds are measuring."""
    return sorted({m.commit for m in context.state.pending})


def spreads(context: SearchContext) -> bool:
    """Return whether several testbeds should measure different commits of a range of which nothing is known.

    It takes more builds. With one builder and builds of 60 s three testbeds took 881 s spread, 713 s with all
    in the middle; where kernels were built already, eight took 0.77 of one testbed's time in the middle.
    """
    return context.build_cost <= context.boot_cost


def left_by_open_trials(
    rater: TrialRater, context: SearchContext, weight: NDArray[np.float64]
) -> Callable[[int], float] | None:
    """Return commit -> share of its information left after the trials under way; None without these.

    weight: (n,) P(the commit is a culprit).
    """
    measured = under_way(context)
    if not measured:
        return None
    parts, contains = rater.posterior.marginal, rater.predictor.shares
    if spreads(context):
        parts = weight

        def contains(commit: int) -> Floats:
            return context.dag.ancestors(commit).astype(float)

    total = max(float(parts.sum()), 1e-12)
    group = np.zeros(len(parts), dtype=np.int64)
    for commit in measured:  # parts are of one group while the trials under way do not tell them apart
        _, group = np.unique(2 * group + (contains(commit) > 0.5), return_inverse=True)
    whole = np.bincount(group, parts) / total

    def factor(commit: int) -> float:
        inside = np.bincount(group, parts * contains(commit)) / total
        p = float(inside.sum())
        alone = p * (1 - p)
        if alone <= 1e-9:
            return 1.0 / (1 + len(measured))
        some = whole > 1e-12
        return float((inside * (whole - inside))[some] @ (1 / whole[some]) / alone)

    return factor


def mutual_information(p: PredictedLevels, noise: Floats, scale: Floats) -> Floats:
    """Return the bits (O,) that one reading of each trial is expected to bring about the culprits.

    noise: (O,) variance of the reading about the level; scale: (O,) factor on squared levels. Information
    about the noise hypothesis alone does not count. Computed in single precision, which halves the time of a
    decision and is exact to 1e-6 bit.
    """
    centre = (p.weight * p.mean).sum(axis=1, keepdims=True)
    noise_sd = np.sqrt(noise)[:, None]
    mean = ((p.mean - centre) * np.sqrt(scale)[:, None] / noise_sd).astype(np.float32)
    v = (scale[:, None] * p.variance / noise_sd**2 + 1.0).astype(np.float32)
    weight = p.weight.astype(np.float32)
    both = v[:, :, None] + v[:, None, :]
    near = mean[:, :, None] - mean[:, None, :]
    near *= near
    near /= both
    near *= -0.5
    np.exp(near, out=near)
    root = np.sqrt(v)
    both = 2.0 * root[:, :, None] * root[:, None, :] / both
    np.sqrt(both, out=both)
    near *= both
    mixed = np.matmul(near, weight[:, :, None])[:, :, 0]
    bits = -(p.weight * np.log2(np.maximum(mixed, MIN_DENSITY))).sum(axis=1)
    if p.culprit_id is not None:
        same = p.culprit_id[:, :, None] == p.culprit_id[:, None, :]
        near *= same
        own = np.matmul(near, weight[:, :, None])[:, :, 0]
        whole = np.matmul(same.astype(np.float32), weight[:, :, None])[:, :, 0]
        bits += (p.weight * np.log2(np.maximum(own, MIN_DENSITY) / np.maximum(whole, MIN_DENSITY))).sum(
            axis=1
        )
    result: Floats = np.maximum(bits, 0.0)
    return result
