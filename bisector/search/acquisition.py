"""The next trial: most information about the culprits per unit of expected cost.

For a trial at a commit every hypothesis (which class holds the culprit, or which two) predicts a normal
distribution of what will be read (predict.py), so measuring an end again is an action like any other. The
mutual information of the hypothesis and the reading is approximated from pairwise distances of these normals
(Kolchinsky and Tracey 2017, with the exponent that is exact for small effects).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.model.dag import CommitDag, Floats
from bisector.search.posterior import Posterior
from bisector.search.predictive import LevelPredictor, PredictedLevels

RUN_COUNTS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of runs that are tried for a visit."""
MAX_RUNS_LIVE_BOOT = 8
"""Runs that are tried at most in a boot that lives: it is asked again after them anyway."""
MIN_RATE_FRACTION = 0.3
"""A trial whose rate is this much below the best one's, at either of the first two numbers of runs tried, is
rated no further: between neighbours in RUN_COUNTS a rate changes by a factor of two at most."""
MIN_DENSITY = 1e-30
"""Stands for zero under a logarithm: what pads a row has no weight."""


@dataclass(frozen=True, slots=True)
class TrialOption:
    """A trial that could be done. fixed: seconds before its first run (build and boot); live: its boot's
    precision so far, None for a new boot."""

    commit: int
    layout: int
    boot: str | None
    fixed: float
    built: bool
    live_precision: float | None = None


@dataclass(frozen=True, slots=True)
class RatedTrial:
    """The best trial: bits it brings, its cost in seconds, and the chance (0..1) that it reads bad."""

    option: TrialOption
    runs: int
    bits: float
    cost: float
    chance: float

    @property
    def rate(self) -> float:
        """Return bits per second."""
        return self.bits / max(self.cost, 1e-9)


class TrialRater:
    """Rates trials for one belief."""

    def __init__(
        self,
        posterior: Posterior,
        dag: CommitDag,
        run_cost: float,
        proven: tuple[tuple[int, ...], ...] = (),
        testbed: int | None = None,
    ) -> None:
        """testbed: which of the problem's testbeds will measure, None for one that has not measured yet."""
        self.posterior = posterior
        self.run_cost = run_cost
        self.predictor = LevelPredictor(posterior, dag, proven, testbed)
        self.boot = posterior.noise_rms("boot")

    def shares(self, commit: int) -> Floats:
        """Return the share (C,) of each class that a commit contains."""
        return self.predictor.shares(commit)

    def best(
        self, options: Sequence[TrialOption], most: int, discount: Callable[[int], float] | None = None
    ) -> list[RatedTrial]:
        """Return the best choice of every option, best rate first. most: runs allowed in one boot.

        Information grows ever more slowly with the runs and costs grow evenly, so their ratio has one peak:
        it is climbed from the middle, and only where it may be the highest of all.
        """
        factor = np.array([1.0 if discount is None else discount(o.commit) for o in options])
        predicted = self.predictor.levels([(o.commit, o.layout) for o in options])
        counts = [m for m in RUN_COUNTS if m <= most] or [1]
        top = np.array(
            [
                len(counts) - 1
                if o.live_precision is None
                else sum(m <= MAX_RUNS_LIVE_BOOT for m in counts) - 1
                for o in options
            ]
        )
        bits = np.full((len(options), len(counts)), np.nan)
        runs = np.array(counts, dtype=float)
        cost = np.array([o.fixed for o in options])[:, None] + runs * self.run_cost
        middle = np.minimum(top, 2)
        for at in (middle, np.maximum(middle - 1, 0)):
            self._fill(bits, options, predicted, np.arange(len(options)), at, counts)
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
            self._fill(bits, options, predicted, rows, at, counts)
        marginal = self.posterior.marginal
        total = max(float(marginal.sum()), 1e-12)
        found = [
            RatedTrial(
                o,
                counts[j],
                float(bits[i, j]),
                float(cost[i, j]),
                float(marginal @ self.shares(o.commit)) / total,
            )
            for i, (o, j) in enumerate(zip(options, peak.tolist(), strict=True))
        ]
        return [found[i] for i in np.argsort(-value, kind="stable")]

    def _fill(
        self,
        bits: Floats,
        options: Sequence[TrialOption],
        predicted: PredictedLevels,
        rows: NDArray[np.int64],
        at: NDArray[np.int64],
        counts: Sequence[int],
    ) -> None:
        """Rate options `rows` with counts[at] runs each, where that is not done yet."""
        new = np.isnan(bits[rows, at])
        rows, at = rows[new], at[new]
        if not len(rows):
            return
        run = 1 / (self.posterior.design.readings.precision_per_run() * np.array([counts[j] for j in at]))
        # A live boot's own offset is partly known already: what its runs tell is that much less.
        lives = [options[i].live_precision for i in rows]
        shrink = np.array(
            [0.0 if x is None else self.boot**2 / max(self.boot**2 + 1 / x, 1e-300) for x in lives]
        )
        noise = self.boot**2 * (1 - shrink) + run
        bits[rows, at] = mutual_information(predicted.rows(rows), noise, (1 - shrink) ** 2)


def mutual_information(p: PredictedLevels, noise: Floats, scale: Floats) -> Floats:
    """Return the bits (O,) that one reading of each trial brings about what holds the culprits.

    noise: (O,) variance of the reading about the level; scale: (O,) by which squared levels are shrunk. What
    a reading tells of the noise alone does not count. In single precision: an error of 1e-6 bit, and half of
    the time of a decision saved.
    """
    centre = (p.weight * p.mean).sum(axis=1, keepdims=True)
    unit = np.sqrt(noise)[:, None]
    mean = ((p.mean - centre) * np.sqrt(scale)[:, None] / unit).astype(np.float32)
    v = (scale[:, None] * p.variance / unit**2 + 1.0).astype(np.float32)
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
