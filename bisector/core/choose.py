"""The next trial: most information about the culprits per unit of expected cost.

For a trial at a commit every hypothesis (which class holds the culprit, or which two) predicts a normal
distribution of what will be read, the uncertainty of levels and effects included; so measuring an end again
is an action like any other. The mutual information of the hypothesis and the reading is approximated from
pairwise distances of these normals (Kolchinsky and Tracey 2017, with the exponent that is exact for small
effects).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.core.history import Floats, History
from bisector.core.posterior import Belief, class_shares, fork_sd

RUNS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of runs that are tried for a visit."""
NOISES = 3
"""Noise hypotheses that trials are rated under: with them nine tenths of the weight, and half of the time."""
MOST, LEAST = 40, 3e-4
"""Hypotheses kept for the predictive distribution, the most probable ones, and how probable at least."""


@dataclass(frozen=True, slots=True)
class Option:
    """A trial that could be done. fixed: seconds before its first run (build and boot); live: its boot's
    precision so far, None for a new boot."""

    commit: int
    layout: int
    boot: str | None
    fixed: float
    built: bool
    live: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The best trial: bits it brings, its cost in seconds, and the chance (0..1) that it reads bad."""

    option: Option
    runs: int
    bits: float
    cost: float
    chance: float

    @property
    def rate(self) -> float:
        """Return bits per second."""
        return self.bits / max(self.cost, 1e-9)


@dataclass(frozen=True, slots=True)
class _Hypotheses:
    """Up to two culprits each under one noise hypothesis.

    noise: its index; first, second: classes (J,), -1 for none; weight: (J,); effect: (J, 2); covariance:
    (J, 3) as (variance of the first, of the second, covariance).
    """

    noise: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weight: Floats
    effect: Floats
    covariance: Floats


def _hypotheses(belief: Belief) -> list[_Hypotheses]:
    """Return the most probable hypotheses, by noise hypothesis."""
    f = belief.fits
    count = len(belief.single)
    first = np.concatenate([[-1], np.arange(count), f.first])
    second = np.concatenate([np.full(count + 1, -1), f.second])
    shown = np.argsort(-belief.weights, kind="stable")[:NOISES]
    flat = belief.joint[shown].ravel()
    order = np.argsort(-flat, kind="stable")[:MOST]
    order = order[flat[order] > LEAST]
    result = []
    for i, g in enumerate(shown.tolist()):
        mine = order[order // len(first) == i] % len(first)
        if len(mine):
            result.append(_effects(belief, g, first[mine], second[mine], belief.joint[g, mine]))
    return result


def _effects(
    belief: Belief, g: int, first: NDArray[np.int64], second: NDArray[np.int64], weight: Floats
) -> _Hypotheses:
    tau2 = belief.problem.effect**2
    gram, slope = belief.fits.gram[g], belief.fits.slope[g]
    has1, has2 = first >= 0, second >= 0
    a = np.where(has1, gram[first, first] + 1 / tau2, 1.0)
    b = np.where(has2, gram[second, second] + 1 / tau2, 1.0)
    c = np.where(has2, gram[first, second], 0.0)
    det = np.maximum(a * b - c * c, 1e-300)
    v1, v2, v12 = b / det * has1, a / det * has2, -c / det * has2
    s1, s2 = slope[first] * has1, slope[second] * has2
    effect = np.stack([v1 * s1 + v12 * s2, v12 * s1 + v2 * s2], axis=1)
    return _Hypotheses(g, first, second, weight, effect, np.stack([v1, v2, v12], axis=1))


class Chooser:
    """Rates trials for one belief."""

    def __init__(
        self,
        belief: Belief,
        history: History,
        run_cost: float,
        proven: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        self.belief = belief
        self.proven = proven
        self.history = history
        self.run_cost = run_cost
        self.hypotheses = _hypotheses(belief)
        self.boot = belief.noise_mean("boot")
        self._shares: dict[int, Floats] = {}

    def shares(self, commit: int) -> Floats:
        """Return the share (C,) of each class that a commit contains."""
        known = self._shares.get(commit)
        if known is None:
            p = self.belief.problem
            if commit in p.tested:
                known = p.classes.contains[:, p.tested.index(commit)].astype(float)
            else:
                known = class_shares(self.history, p.classes, commit)
            self._shares[commit] = known
        return known

    def _prior_part(self, option: Option, g: int) -> tuple[Floats, float]:
        """Return the covariance (T,) of the option's level with the cells, and its own variance."""
        p, noise = self.belief.problem, self.belief.fits.noises[g]
        k = np.zeros(len(p.commit))
        own = noise.unit**2
        if noise.unit and option.commit in p.tested:
            at = p.tested.index(option.commit)
            layouts = p.readings.layout
            for t in np.flatnonzero(p.commit == at):
                if int(layouts[np.argmax(p.cell == t)]) == option.layout:
                    k[t] += noise.unit**2
        if noise.walk:
            everything = max(1.0, float(self.history.candidate.sum()))
            shared = np.array([self.history.common(option.commit, c) for c in p.tested]) / everything
            k += noise.walk**2 * shared[p.commit]
            own += noise.walk**2 * self.history.common(option.commit, option.commit) / everything
        if noise.drift:
            k += noise.drift**2 * p.time
            own += noise.drift**2
        base = self.history.base(option.commit)
        if base:
            offset = fork_sd(p) ** 2
            own += offset
            same = [t for t, c in enumerate(p.tested) if self.history.base(c) == base]
            k += offset * np.isin(p.commit, same)
        return k, own

    def _predict(self, option: Option) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Return (weight, mean, variance, what), each (J',), of the option's level under the hypotheses.

        what: the same number where only the noise hypothesis differs.
        """
        share = self.shares(option.commit)
        row = self._fixed_row(option.commit)
        parts = [self._predict_one(option, share, row, h) for h in self.hypotheses]
        weight, mean, variance, what = (np.concatenate(column) for column in zip(*parts, strict=True))
        return weight / weight.sum(), mean, variance, what

    def _predict_one(
        self, option: Option, share: Floats, row: Floats, h: _Hypotheses
    ) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        p, f, g = self.belief.problem, self.belief.fits, h.noise
        k, own = self._prior_part(option, g)
        weight = f.weight[g]
        ak = weight * k if weight.ndim == 1 else weight @ k
        e = row - p.fixed.T @ ak
        base = float(ak @ f.y[g]) + float(e @ f.beta[g])
        spread = max(own - float(k @ ak), 0.0) + float(e @ f.covariance[g] @ e)
        lower = p.design @ ak + f.cross[g] @ (f.covariance[g] @ e)  # what the fixed columns take away
        s1 = np.where(h.first >= 0, share[h.first], 0.0)
        s2 = np.where(h.second >= 0, share[h.second], 0.0)
        l1 = np.where(h.first >= 0, lower[h.first], 0.0)
        l2 = np.where(h.second >= 0, lower[h.second], 0.0)
        name = (h.first + 1) * (len(share) + 1) + h.second + 1
        columns: list[tuple[Floats, Floats, Floats, NDArray[np.int64]]] = []
        for in1 in (0, 1):
            for in2 in (0, 1):
                w = h.weight * (s1 if in1 else 1 - s1) * (s2 if in2 else 1 - s2)
                keep = w > 1e-5
                if not keep.any():
                    continue
                g1, g2 = (in1 - l1)[keep], (in2 - l2)[keep]
                c, effect = h.covariance[keep], h.effect[keep]
                mean = base + g1 * effect[:, 0] + g2 * effect[:, 1]
                variance = spread + g1**2 * c[:, 0] + g2**2 * c[:, 1] + 2 * g1 * g2 * c[:, 2]
                columns.append((w[keep], mean, variance, name[keep] * 4 + 2 * in1 + in2))
        weights, means, variances, what = (np.concatenate(column) for column in zip(*columns, strict=True))
        return weights, means, variances, what

    def _fixed_row(self, commit: int) -> Floats:
        p = self.belief.problem
        row = np.ones(p.fixed.shape[1])
        for column, commits in enumerate(self.proven, start=1):
            row[column] = np.mean([self.history.is_ancestor(c, commit) for c in commits])
        return row

    def rate(self, option: Option, counts: Sequence[int]) -> list[Choice]:
        """Return a Choice for each number of runs."""
        weight, mean, variance, what = self._predict(option)
        per_run = self.belief.problem.readings.per_run()
        p = self.shares(option.commit)
        chance = float((self.belief.marginal * p).sum() / max(self.belief.marginal.sum(), 1e-12))
        gap = (mean[:, None] - mean) ** 2
        several = len(self.hypotheses) > 1
        same = what[:, None] == what if several else None
        result = []
        for m in counts:
            if option.live is None:
                noise, scale = self.boot**2 + 1 / (per_run * m), 1.0
            else:  # the boot's own offset is partly known already
                shrink = self.boot**2 / (self.boot**2 + 1 / option.live)
                noise, scale = self.boot**2 * (1 - shrink) + 1 / (per_run * m), (1 - shrink) ** 2
            v = scale * variance + noise
            both = v[:, None] + v
            near = np.exp(-scale * gap / (2 * both)) * np.sqrt(2 * np.sqrt(v[:, None] * v) / both)
            bits = -float(weight @ np.log2(near @ weight))
            if same is not None:  # what is learnt about the noise alone does not count
                own = same * weight
                bits += float(weight @ np.log2((near * own).sum(axis=1) / own.sum(axis=1)))
            result.append(Choice(option, m, max(bits, 0.0), option.fixed + m * self.run_cost, chance))
        return result

    def best(
        self, options: Sequence[Option], most: int, discount: Callable[[int], float] | None = None
    ) -> list[Choice]:
        """Return the best choice of every option, best rate first. most: runs allowed in one boot."""
        counts = [m for m in RUNS if m <= most] or [1]
        found = []
        for option in options:
            few = [m for m in counts if m <= 8] if option.live is not None else counts
            choices = self.rate(option, few or [1])
            found.append(max(choices, key=lambda c: c.rate))
        factor = discount or (lambda _: 1.0)
        return sorted(found, key=lambda c: -c.rate * factor(c.option.commit))
