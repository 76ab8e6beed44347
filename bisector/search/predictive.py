"""The predictive distribution: what a trial at some commit would measure, under each probable hypothesis.

A hypothesis is: no culprit, one in a class, or two in two classes, under one noise hypothesis. It predicts a
normal distribution of a commit's level, which includes the uncertainty of levels and effects. All trials of a
decision are predicted together, because they share the large matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.model.dag import CommitDag, Floats
from bisector.search.design_matrix import class_shares, fork_offset_sd
from bisector.search.posterior import Posterior
from bisector.stats.student_t import BootTails, tails_of_levels

RATED_NOISE_HYPOTHESES = 3
"""Noise hypotheses under which trials are rated, the most probable ones. Three hold nine tenths of the
probability and take half of the time of all."""
MAX_HYPOTHESES = 40
"""Hypotheses kept, the most probable ones."""
MIN_HYPOTHESIS_PROBABILITY = 3e-4
"""Hypotheses less probable than this are dropped."""
MAX_PREDICTIONS = 96
"""Predictions kept for one trial. A commit inside of a class splits each hypothesis into two or four."""


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Hypotheses of up to two culprits, under one noise hypothesis.

    noise: its index; first, second: (J,) classes, -1 for none; weight: (J,); effect: (J, 2); covariance: (J,
    3) variance of the first effect, of the second, and their covariance.
    """

    noise: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weight: Floats
    effect: Floats
    covariance: Floats


@dataclass(frozen=True, slots=True)
class PredictedLevels:
    """Levels of O trials under J hypotheses each: weight (rows sum to one), mean, variance: (O, J).

    culprit_id: (O, J) equal where only the noise hypothesis differs; None if there is only one of these.
    """

    weight: Floats
    mean: Floats
    variance: Floats
    culprit_id: NDArray[np.int64] | None

    def rows(self, index: NDArray[np.int64]) -> PredictedLevels:
        """Return the given trials only."""
        culprit_id = None if self.culprit_id is None else self.culprit_id[index]
        return PredictedLevels(self.weight[index], self.mean[index], self.variance[index], culprit_id)


def _most_probable(posterior: Posterior, noises: int = RATED_NOISE_HYPOTHESES) -> list[Hypotheses]:
    """Return the most probable hypotheses, grouped by noise hypothesis. noises: how many of these."""
    f = posterior.fits
    count = len(posterior.single)
    first = np.concatenate([[-1], np.arange(count), f.first])
    second = np.concatenate([np.full(count + 1, -1), f.second])
    shown = np.argsort(-posterior.weights, kind="stable")[:noises]
    flat = posterior.joint[shown].ravel()
    order = np.argsort(-flat, kind="stable")[:MAX_HYPOTHESES]
    order = order[flat[order] >= min(MIN_HYPOTHESIS_PROBABILITY, flat.max())]
    result = []
    for i, g in enumerate(shown.tolist()):
        mine = order[order // len(first) == i] % len(first)
        if len(mine):
            result.append(_effects(posterior, g, first[mine], second[mine], posterior.joint[g, mine]))
    return result


def _effects(
    posterior: Posterior, g: int, first: NDArray[np.int64], second: NDArray[np.int64], weight: Floats
) -> Hypotheses:
    """Return hypotheses with the normal posterior of their effects, under noise hypothesis g."""
    tau2 = posterior.design.effect**2
    gram, slope = posterior.fits.gram[g], posterior.fits.slope[g]
    has1, has2 = first >= 0, second >= 0
    a = np.where(has1, gram[first, first] + 1 / tau2, 1.0)
    b = np.where(has2, gram[second, second] + 1 / tau2, 1.0)
    c = np.where(has2, gram[first, second], 0.0)
    det = np.maximum(a * b - c * c, 1e-300)
    v1, v2, v12 = b / det * has1, a / det * has2, -c / det * has2
    s1, s2 = slope[first] * has1, slope[second] * has2
    effect = np.stack([v1 * s1 + v12 * s2, v12 * s1 + v2 * s2], axis=1)
    return Hypotheses(g, first, second, weight, effect, np.stack([v1, v2, v12], axis=1))


def squared_distances(posterior: Posterior) -> Floats:
    """Return the expected squared distance (V,) of each visit from the level of its commit, by the culprits.

    Under the most probable noise. What a binary, the background or drift add is no part of that level: it
    would follow the visit. What the visits of a testbed have in common is.
    """
    p, f = posterior.design, posterior.fits
    r = p.readings
    (h,) = _most_probable(posterior, 1)
    lower = p.fixed @ f.covariance[h.noise] @ f.cross[h.noise].T  # (T, C): as in `LevelPredictor._under`
    effects = p.indicator.T - lower
    # A class of -1 has the effect 0.
    level = p.fixed @ f.beta[h.noise] + h.effect[:, 0, None] * effects.T[h.first]
    level += h.effect[:, 1, None] * effects.T[h.second]
    distance = r.location - level[:, p.cell]
    if len(r.testbeds) > 1:
        for testbed in range(len(r.testbeds)):
            on = r.testbed == testbed
            distance[:, on] -= np.median(distance[:, on], axis=1, keepdims=True)
    result: Floats = h.weight @ distance**2 / h.weight.sum()
    return result


def tails_of_boots(posterior: Posterior) -> BootTails | None:
    """Return the heavy tails that boots show: those of one binary, or all by their levels; None for none."""
    r = posterior.design.readings
    return r.tails or tails_of_levels(
        _squares_apart(posterior), r.precision, r.noise.boot[r.testbed], r.resolution
    )


def ratio_in_tails(posterior: Posterior, tails: BootTails) -> Floats:
    """Return `Readings.boot_ratio` (V,) by the distances of boots from their levels, too."""
    r = posterior.design.readings
    ratio = r.noise.boot[r.testbed]
    return ratio * tails.stretch(_squares_apart(posterior), ratio, r.precision)


def _squares_apart(posterior: Posterior) -> Floats:
    """Return squared distances (V,): a boot lies apart that is far from the level of its commit and from the
    others of its binary. Where these agree, the commit, or its binary, has another level."""
    return np.minimum(squared_distances(posterior), posterior.design.readings.boot_squares)


class LevelPredictor:
    """Predicts levels from one posterior."""

    def __init__(
        self,
        posterior: Posterior,
        dag: CommitDag,
        proven: tuple[tuple[int, ...], ...] = (),
        testbed: int | None = None,
    ) -> None:
        """testbed: index of the testbed that will measure; None if it has not measured yet."""
        self.posterior = posterior
        self.dag = dag
        self.proven = proven
        self.testbed = testbed
        self.hypotheses = _most_probable(posterior)
        self._tested_index = {c: i for i, c in enumerate(posterior.design.tested)}
        self._shares: dict[int, Floats] = {}

    def shares(self, commit: int) -> Floats:
        """Return the share (C,) of each class that a commit contains."""
        known = self._shares.get(commit)
        if known is None:
            classes = self.posterior.design.classes
            index = self._tested_index.get(commit)
            if index is not None:
                known = classes.contains[:, index].astype(float)
            else:
                known = class_shares(self.dag, classes, self.dag.ancestors(commit))
            self._shares[commit] = known
        return known

    def levels(self, trials: Sequence[tuple[int, int]]) -> PredictedLevels:
        """Predict the levels of binaries, given as (commit, layout)."""
        share = np.stack([self.shares(commit) for commit, _ in trials])
        rows, unknown = zip(*(self._fixed_row(commit) for commit, _ in trials), strict=True)
        fixed, open_ = np.stack(rows), np.array(unknown)
        parts = [self._under(h, trials, share, fixed, open_) for h in self.hypotheses]
        weight, mean, variance, culprit_id = (np.concatenate(c, axis=1) for c in zip(*parts, strict=True))
        wide = min(int((weight > 1e-5).sum(axis=1).max()), MAX_PREDICTIONS)
        kept = np.argpartition(-weight, wide - 1, axis=1)[:, :wide]
        weight, mean, variance, culprit_id = (
            np.take_along_axis(x, kept, axis=1) for x in (weight, mean, variance, culprit_id)
        )
        several = len(self.hypotheses) > 1
        return PredictedLevels(
            weight / weight.sum(axis=1, keepdims=True), mean, variance, culprit_id if several else None
        )

    def _under(
        self, h: Hypotheses, trials: Sequence[tuple[int, int]], share: Floats, fixed: Floats, unknown: Floats
    ) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Return (weight, mean, variance, culprit_id), each (O, 4 J), under one noise hypothesis.

        A trial contains none, one or both of two culprits: 4 combinations for each hypothesis; the
        shares of the classes rule most of them out. unknown: (O,) further variance of the levels.
        """
        p, f, g = self.posterior.design, self.posterior.fits, h.noise
        prior = [self._prior_covariance(commit, layout, g) for commit, layout in trials]
        k, own = np.stack([x for x, _ in prior]), np.array([x for _, x in prior])
        ak = f.weigh(k, g)
        e = fixed - ak @ p.fixed
        ec = e @ f.covariance[g]
        base = ak @ f.y[g] + e @ f.beta[g]
        spread = np.maximum(own - (k * ak).sum(axis=1), 0.0) + (ec * e).sum(axis=1) + unknown
        lower = ak @ p.indicator.T + ec @ f.cross[g].T  # the part that the fixed effects explain
        has1, has2 = h.first >= 0, h.second >= 0
        s1, s2 = share[:, h.first] * has1, share[:, h.second] * has2
        l1, l2 = lower[:, h.first] * has1, lower[:, h.second] * has2
        in1, in2 = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
        shape = (len(trials), -1)
        chance1 = np.where(in1 > 0, s1[:, :, None], 1 - s1[:, :, None])
        chance2 = np.where(in2 > 0, s2[:, :, None], 1 - s2[:, :, None])
        w = h.weight[:, None] * chance1 * chance2
        g1, g2 = in1 - l1[:, :, None], in2 - l2[:, :, None]
        e1, e2 = h.effect[:, :1], h.effect[:, 1:]
        c1, c2, c12 = h.covariance[:, :1], h.covariance[:, 1:2], h.covariance[:, 2:]
        mean = base[:, None, None] + g1 * e1 + g2 * e2
        variance = spread[:, None, None] + g1 * g1 * c1 + g2 * g2 * c2 + 2 * g1 * g2 * c12
        culprit_id = ((h.first + 1) * (share.shape[1] + 1) + h.second + 1)[:, None] * 4 + np.arange(4)
        culprit_id = np.broadcast_to(culprit_id, w.shape)
        return w.reshape(shape), mean.reshape(shape), variance.reshape(shape), culprit_id.reshape(shape)

    def _prior_covariance(self, commit: int, layout: int, g: int) -> tuple[Floats, float]:
        """Return the covariance (T,) of a binary's level with the cells, and its own variance."""
        p, noise = self.posterior.design, self.posterior.fits.noises[g]
        k = np.zeros(len(p.commit))
        own = noise.binary**2
        index = self._tested_index.get(commit)
        if noise.binary and index is not None:
            k[(p.commit == index) & (p.layout == layout)] += noise.binary**2
        if noise.background:
            inside = self.shares(commit) * p.classes.size / max(1, int(p.classes.size.sum()))
            k += noise.background**2 * (inside @ p.indicator)
            own += noise.background**2 * float(inside.sum())
        if noise.drift:
            k += noise.drift**2 * p.time
            own += noise.drift**2
        if noise.testbed:
            own += noise.testbed**2
            if self.testbed is not None:
                k[p.testbed == self.testbed] += noise.testbed**2
        base = self.dag.fork_base(commit)
        if base:
            offset = fork_offset_sd(p) ** 2
            own += offset
            same = [t for t, c in enumerate(p.tested) if self.dag.fork_base(c) == base]
            k += offset * np.isin(p.commit, same)
        return k, own

    def _fixed_row(self, commit: int) -> tuple[Floats, float]:
        """Return the fixed effects of a commit, and the variance of those that no measured commit has.

        One that contains a part of a proven set has a level that is the part's own. Without it each further
        run of such a commit seems to tell what the design takes from it, and the search measures it for ever.
        """
        p = self.posterior.design
        row, unknown = np.zeros(p.fixed.shape[1]), 0.0
        row[0] = 1.0
        for number, commits in enumerate(self.proven):
            contained = tuple(self.dag.ancestors(commit)[list(commits)].tolist())
            row[1 + number] = np.mean(contained)
            column = p.parts.get((number, contained))
            if column is not None:
                row[column] = 1.0
            elif any(contained) and not all(contained):
                unknown += p.effect**2
        return row, unknown


def expected_effect(posterior: Posterior, after: int, parent: int) -> tuple[float, float]:
    """Return mean and standard deviation of the effect that the search expects between two commits."""
    p = posterior.design
    index = {c: i for i, c in enumerate(p.tested)}
    if after in index and parent in index:
        inside = p.classes.contains[:, index[after]] & ~p.classes.contains[:, index[parent]]
        if inside.any():
            k = int(np.argmax(np.where(inside, posterior.marginal, -1.0)))
            return posterior.effect(k)
    k = int(np.argmax(posterior.marginal))
    return posterior.effect(k)
