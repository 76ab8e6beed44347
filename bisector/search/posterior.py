"""The posterior of the culprits: Bayesian change points on the commit graph, in closed form.

The locations y of the visits, averaged into cells (see design_matrix), follow

    y = X beta + sum of effect_k * h_k + e,     e ~ N(0, K)

h_k is 1 where the cell's commit contains culprit k. X holds the common level and the culprits proven so far.
K is the sum of: boot and run noise; an offset of each binary; a random walk along history (the background;
its covariance is the history that two commits share); drift in time; offsets of fork bases and of testbeds.
Effects have normal priors without the part below the threshold. The probability that a class of commits holds
the culprit, alone or with a second one, follows from the Gram matrix H K^-1 H' (Smith 1975; Barry and
Hartigan 1993). All is computed under a few noise hypotheses, which are weighed by their marginal likelihoods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bisector.model.dag import Floats, Ints, Mask
from bisector.search.design_matrix import (
    DesignMatrix,
    NoiseHypothesis,
    are_diagonal,
    dense_covariances,
    few_groups,
    nested_covariances,
)
from bisector.stats.grouping import average_cells, sum_by
from bisector.stats.linear.dense_covariance import DenseCovariance
from bisector.stats.linear.effect_factors import one_effect, two_effects
from bisector.stats.linear.projection import project_out
from bisector.stats.nested_covariance import NestedCovariance

CULPRIT_COUNT_LOG_PRIOR = (math.log(0.04), math.log(0.81), math.log(0.15))
"""No, one, two culprits in a range whose ends are known to differ. A choice: mostly one."""
SCAN_COUNT_LOG_PRIOR = (math.log(0.3), math.log(0.3), math.log(0.4))
"""The same with --scan, also after some are proven: ends may not differ, and what cancels comes in pairs."""
FURTHER_COUNT_LOG_PRIOR = (math.log(0.6), math.log(0.33), math.log(0.07))
"""No, one, two further culprits after some are proven."""
MIN_EFFECT_PER_THRESHOLD = 0.7
"""Smallest effect of a culprit, in thresholds. Below 1, so that a culprit of exactly the threshold is not
lost to the noise of its estimate."""
MAX_PAIR_CLASSES = 40
"""Pairs of culprits are formed among this many classes, the most probable ones: 780 pairs."""
PROVEN_EFFECT_SD_PER_THRESHOLD, PROVEN_EFFECT_SD_PER_SPAN = 1e3, 10.0
"""Prior standard deviation of a proven culprit's effect, in thresholds and in spans of all locations: the
larger counts. Nearly flat; effects of two stay finite where no cell tells them apart, only their sum."""
LEVEL_SD_PER_PROVEN_EFFECT_SD = 1e5
"""The same of the common level, in that of a proven effect. Flat: a fixed one is not, in bytes per second."""


@dataclass(frozen=True, slots=True)
class NoiseFits:
    """All G noise hypotheses fitted at once, with the fixed effects projected out.

    covariances: of the cells; inverse variances (G, T) if they are diagonal; y: (G, T) locations of the
    cells; gram: (G, C, C) H K^-1 H'; slope: (G, C) H K^-1 y; beta: (G, p) fixed effects without culprits,
    covariance: (G, p, p) theirs; cross: (G, C, p) H K^-1 X; evidence: (G,) log marginal likelihood without
    culprits; single: (G, C) log Bayes factors of one culprit against none; first, second: (M,) classes of the
    pairs considered; pair: (G, M) log Bayes factors of two culprits against none.
    """

    noises: tuple[NoiseHypothesis, ...]
    covariances: Floats | DenseCovariance | NestedCovariance
    y: Floats
    gram: Floats
    slope: Floats
    beta: Floats
    covariance: Floats
    cross: Floats
    evidence: Floats
    single: Floats
    first: Ints
    second: Ints
    pair: Floats

    def weigh(self, rows: Floats, g: int) -> Floats:
        """Return rows (R, T) times the inverse covariance of the g-th noise hypothesis."""
        if isinstance(self.covariances, np.ndarray):
            result: Floats = rows * self.covariances[g]
            return result
        return self.covariances.solve_one(rows, g)


@dataclass(frozen=True, slots=True)
class Posterior:
    """Probabilities of culprits and of noise hypotheses.

    weights: (G,) of the noise hypotheses; best: index of the most probable one. joint: (G, 1 + C + M)
    probability of each noise hypothesis with no culprit, one, or a pair; the following are its sums. none: no
    culprit; single: (C,) exactly one culprit, in this class; pair: (M,) two culprits, in the classes
    fits.first and fits.second; marginal: (C,) the class holds a culprit.
    """

    design: DesignMatrix
    fits: NoiseFits
    weights: Floats
    best: int
    joint: Floats
    none: float
    single: Floats
    pair: Floats
    marginal: Floats

    def effect(self, k: int) -> tuple[float, float]:
        """Return mean and sd, in worse units, of the effect of class k if it holds a culprit."""
        f, tau2 = self.fits, self.design.effect**2
        count = len(self.single)
        one = f.gram[:, k, k] + 1 / tau2
        means, variances = [(f.slope[:, k] / one)[:, None]], [(1 / one)[:, None]]
        weights = [self.joint[:, 1 + k : 2 + k]]
        mine = np.flatnonzero((f.first == k) | (f.second == k))
        if len(mine):  # with a second culprit elsewhere
            other = np.where(f.first[mine] == k, f.second[mine], f.first[mine])
            two = f.gram[:, other, other] + 1 / tau2
            off = f.gram[:, k, other]
            det = np.maximum(one[:, None] * two - off**2, 1e-300)
            means.append((two * f.slope[:, k : k + 1] - off * f.slope[:, other]) / det)
            variances.append(two / det)
            weights.append(self.joint[:, 1 + count + mine])
        m, v, w = (np.concatenate(x, axis=1) for x in (means, variances, weights))
        w = w + 1e-300
        w /= w.sum()
        mean = float((w * m).sum())
        return mean, math.sqrt(max(float((w * (v + m * m)).sum()) - mean * mean, 0.0))

    def commit_probabilities(self, weights: Floats) -> Floats:
        """Return for every commit (n,) the probability that it is a culprit. weights: (n,) priors."""
        label = self.design.classes.label
        chosen = label >= 0
        own, label = weights[chosen], label[chosen]
        whole = np.bincount(label, own, minlength=len(self.marginal))
        result = np.zeros(len(weights))
        result[chosen] = self.marginal[label] * own / np.maximum(whole[label], 1e-300)
        return result

    def hidden_pair(self, divisible: Mask) -> float:
        """Return the probability of two culprits that cancel within one class. divisible: (C,) these only."""
        p = self.design
        odds = math.exp(p.count_log_prior[2] - p.count_log_prior[0]) * float((p.prior[divisible] ** 2).sum())
        return odds / (1 + odds)

    @property
    def boot_spreads(self) -> list[tuple[float, float]]:
        """Return the possible standard deviations between boots, in worse units, with their weights."""
        return [(n.boot, float(w)) for n, w in zip(self.fits.noises, self.weights, strict=True)]

    def noise_reaches(self, name: str, least: float) -> float:
        """Return the probability that a noise component, such as 'binary', is at least so large."""
        large = np.array([getattr(n, name) >= least for n in self.fits.noises])
        return float(self.weights[large].sum())

    def noise_rms(self, name: str) -> float:
        """Return the posterior root mean square of a noise component, such as 'binary', in worse units."""
        values = np.array([getattr(n, name) ** 2 for n in self.fits.noises])
        return math.sqrt(float(self.weights @ values))


def fit_noise_hypotheses(
    p: DesignMatrix, noises: tuple[NoiseHypothesis, ...], pairs: int = MAX_PAIR_CLASSES
) -> NoiseFits:
    """Fit the model above under each noise hypothesis. pairs: how many classes pairs are formed among."""
    r = p.readings
    centre = float(r.location.mean())  # so that squares of large levels do not cancel
    y, diagonal, evidence = average_visits(p, np.array([n.boot for n in noises]), centre)
    rows = np.concatenate([p.indicator, p.fixed.T])
    c = len(p.indicator)
    covariances: Floats | DenseCovariance | NestedCovariance
    if few_groups(p, noises):
        covariances, cell = nested_covariances(p, noises, diagonal)
        evidence -= 0.5 * covariances.log_determinant
        moment, square = covariances.project(y)
        rows = rows[:, cell]
        products = rows @ covariances.grouped[:, : len(cell), : len(cell)] @ rows.T
        moments = moment[:, : len(cell)] @ rows.T
    elif are_diagonal(p, noises):
        covariances = w = 1.0 / (diagonal + np.array([n.binary for n in noises])[:, None] ** 2)
        evidence += 0.5 * np.log(w).sum(axis=1)
        _, cell, commit = np.unique(p.commit, return_index=True, return_inverse=True)
        white = rows[:, cell] * np.sqrt(sum_by(w, commit, len(cell)))[:, None, :]
        products = white @ white.transpose(0, 2, 1)
        moments, square = (w * y) @ rows.T, (w * y**2).sum(axis=1)
    else:
        covariances = DenseCovariance(dense_covariances(p, noises, diagonal))
        evidence -= 0.5 * covariances.log_determinant
        white = covariances.whiten(rows, y)
        products = white @ white.transpose(0, 2, 1)
        moments, square, products = products[:, -1, :-1], products[:, -1, -1], products[:, :-1, :-1]
    hh, hx, xx = products[:, :c, :c], products[:, :c, c:], products[:, c:, c:]
    hy, xy = moments[:, :c], moments[:, c:]
    info = xx + np.diag(fixed_effect_precisions(p))
    covariance = np.linalg.inv(info).astype(float, copy=False)
    beta, gram, slope, residual = project_out(info, covariance, hx, xy, hh, hy, square)
    evidence -= 0.5 * (residual + np.linalg.slogdet(info)[1])
    single = one_effect(gram, slope, p.effect, MIN_EFFECT_PER_THRESHOLD * p.threshold)
    beta[:, 0] += centre
    fitted = (noises, covariances, y + centre, gram, slope, beta, covariance, hx, evidence, single)
    return NoiseFits(*fitted, *pair_factors(p, gram, slope, single, evidence, pairs))


def average_visits(p: DesignMatrix, boots: Floats, centre: float) -> tuple[Floats, Floats, Floats]:
    """Return locations of the cells less a centre, and their variances by runs and boots, both (G, T), and
    the log likelihood (G,) of the scatter within cells. boots: (G,) standard deviations between boots."""
    r = p.readings
    weight = 1.0 / ((boots[:, None] * r.boot_ratio) ** 2 + 1.0 / r.precision)
    y, total, log_likelihood = average_cells(weight, r.location - centre, p.cell)
    return y, 1.0 / total + r.resolution**2, log_likelihood


def fixed_effect_precisions(p: DesignMatrix) -> Floats:
    """Return the prior precisions (p,) of the fixed effects."""
    span = float(np.ptp(p.readings.location))
    proven_sd = max(PROVEN_EFFECT_SD_PER_THRESHOLD * p.threshold, PROVEN_EFFECT_SD_PER_SPAN * span)
    precision = np.full(p.fixed.shape[1], proven_sd**-2)
    precision[0] = (LEVEL_SD_PER_PROVEN_EFFECT_SD * proven_sd) ** -2
    return precision


def pair_factors(
    p: DesignMatrix, gram: Floats, slope: Floats, single: Floats, evidence: Floats, most: int
) -> tuple[Ints, Ints, Floats]:
    """Return first, second and pair of `NoiseFits`, of the most probable classes."""
    least = MIN_EFFECT_PER_THRESHOLD * p.threshold
    return two_effects(gram, slope, single, evidence, p.prior, p.effect, least, most)


def log_joint(p: DesignMatrix, f: NoiseFits) -> Floats:
    """Return logs (G, 1 + C + M), up to one constant, of the probabilities that are `Posterior.joint`."""
    return joint_of(p, f.noises, f.evidence, f.single, f.first, f.second, f.pair)


def joint_of(
    p: DesignMatrix,
    noises: tuple[NoiseHypothesis, ...],
    evidence: Floats,
    single: Floats,
    first: Ints,
    second: Ints,
    pair: Floats,
) -> Floats:
    """Return `log_joint` of some noise hypotheses; arrays as in `NoiseFits`."""
    with np.errstate(divide="ignore"):
        prior = np.log(p.prior)
    outer = (evidence + np.array([n.log_prior for n in noises]))[:, None]
    none = outer + p.count_log_prior[0]
    one = outer + p.count_log_prior[1] + prior + single
    two = outer + p.count_log_prior[2] + math.log(2) + prior[first] + prior[second] + pair
    result: Floats = np.concatenate([none, one, two], axis=1)
    return result


def compute_posterior(
    p: DesignMatrix, noises: tuple[NoiseHypothesis, ...], pairs: int = MAX_PAIR_CLASSES
) -> Posterior:
    """Return the posterior of culprits and noise. pairs: number of classes that pairs are formed among."""
    f = fit_noise_hypotheses(p, noises, pairs)
    joint = log_joint(p, f)
    joint = np.exp(joint - joint.max())
    joint /= joint.sum()
    weights = joint.sum(axis=1)
    summed = joint.sum(axis=0)
    count = len(p.prior)
    one, two = summed[1 : count + 1], summed[count + 1 :]
    marginal = one + np.bincount(f.first, two, count) + np.bincount(f.second, two, count)
    return Posterior(p, f, weights, int(np.argmax(weights)), joint, float(summed[0]), one, two, marginal)
