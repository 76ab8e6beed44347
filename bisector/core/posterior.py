"""What is believed about the culprits: Bayesian change points on the commit graph, in closed form.

The locations y of the visits, averaged into cells (one binary on one testbed in one stretch of time), follow

    y = X beta + sum of effect_k * h_k + e,     e ~ N(0, K)

h_k is 1 where the cell's commit contains culprit k; X holds the common level and the culprits proven so far.
K adds up boot and run noise, the binary's own offset (build effect), a random walk along history (background:
its covariance is what two commits have in common), drift in time, fork points and testbeds. Effects have
normal priors cut at the threshold. Everything about which class of commits holds the culprit, alone or with a
second one, follows from the Gram matrix H K^-1 H' (Smith 1975; Barry and Hartigan 1993), for a handful of
noise hypotheses that are weighed by their evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from bisector.core.history import History, Ints, Mask, Partition
from bisector.core.noise import FLOOR, Readings

Floats = NDArray[np.float64]

FIRST = (math.log(0.04), math.log(0.81), math.log(0.15))
"""No, one, two culprits in a range that has passed the verification of its ends: mostly one."""
MORE = (math.log(0.7), math.log(0.25), math.log(0.05))
"""No, one, two more culprits when some are proven."""
CUT = 0.7
"""A culprit's effect is at least the threshold; 0.7 leaves room for a noisy estimate of one that just is."""
PAIRS = 72
"""Pairs are formed among so many classes, the most probable ones: 2,556 pairs, under a millisecond."""
BOOT = ((0.0, 0.35), (0.35, 0.15), (0.75, 0.2), (1.5, 0.2), (3.0, 0.1))
"""(boot spread / run spread, prior): the grid of search.md reaches 2; real kernels reach higher."""
UNIT = ((0.0, 0.6), (0.1, 0.2), (0.25, 0.12), (0.5, 0.08))
"""(spread between binaries / effect, prior)."""
WALK = ((0.0, 0.75), (0.5, 0.15), (2.0, 0.1))
"""(background over the whole range / effect, prior)."""
DRIFT = ((0.0, 0.8), (0.5, 0.12), (2.0, 0.08))
"""(drift over the time measured so far / effect, prior)."""
KEPT = 6
"""Noise hypotheses carried from one decision to the next."""


@dataclass(frozen=True, slots=True)
class Noise:
    """One hypothesis about the noise, as standard deviations in worse units. log_prior: its weight so far."""

    boot: float
    unit: float = 0.0
    walk: float = 0.0
    drift: float = 0.0
    testbed: float = 0.0
    log_prior: float = 0.0


@dataclass(frozen=True, slots=True)
class Problem:
    """The visits as cells, and the hypotheses about them.

    tested: the distinct commits measured or known by their binary; commit: (T,) index into tested; binary:
    (T,) number of the (commit, layout); testbed, time: (T,); fork: (T,) number of the fork base, 0 that of
    good; cell: (V,) cell of each visit; fixed: (T, p) columns without prior; classes: the partition, prior:
    (C,) what marks and equal binaries leave of its prior; design: (C, T) H; span: seconds; effect: scale of
    effects in worse units; common: (T, T) part of the range that two cells share; counts: log prior of no,
    one, two (more) culprits.
    """

    readings: Readings
    tested: tuple[int, ...]
    commit: Ints
    binary: Ints
    testbed: Ints
    time: Floats
    fork: Ints
    cell: Ints
    fixed: Floats
    classes: Partition
    prior: Floats
    design: Floats
    span: float
    effect: float
    threshold: float
    common: Floats
    counts: tuple[float, float, float]
    blocks: int


@dataclass(frozen=True, slots=True)
class Fit:
    """One noise hypothesis fitted: weighted least squares pieces, after the fixed columns are projected out.

    weight: (T,) or (T, T) inverse covariance; y: (T,) cell locations; gram: (C, C); slope: (C,);
    beta: (p,) fixed effects without culprits, with covariance (p, p); cross: (C, p);
    evidence: log marginal likelihood without culprit; single: (C,) log Bayes factors against it with the
    cut prior; pair: (P, P) the same for pairs among `pairs` (upper triangle), -inf elsewhere.
    """

    noise: Noise
    weight: Floats
    y: Floats
    gram: Floats
    slope: Floats
    beta: Floats
    covariance: Floats
    cross: Floats
    evidence: float
    single: Floats
    pairs: Ints
    pair: Floats


@dataclass(frozen=True, slots=True)
class Belief:
    """The posterior. fits and weights: noise hypotheses, most probable first.

    none: probability of no culprit; single: (C,) of exactly one, in that class; pair: (C, C) upper triangle;
    marginal: (C,) probability that a class holds a culprit.
    """

    problem: Problem
    fits: tuple[Fit, ...]
    weights: Floats
    none: float
    single: Floats
    pair: Floats
    marginal: Floats

    def effect(self, k: int) -> tuple[float, float]:
        """Return mean and standard deviation of the effect of class k, given that it holds a culprit."""
        problem, total, mean, square = self.problem, 0.0, 0.0, 0.0
        tau2 = problem.effect**2
        for fit, w in zip(self.fits, self.weights, strict=True):
            v = 1 / (1 / tau2 + fit.gram[k, k])
            m = v * fit.slope[k]
            total += w
            mean += w * m
            square += w * (v + m * m)
        mean /= total
        return mean, math.sqrt(max(square / total - mean * mean, 0.0))

    def noise_mean(self, name: str) -> float:
        """Return the posterior root mean square of one noise component."""
        values = [getattr(f.noise, name) ** 2 for f in self.fits]
        return math.sqrt(float(np.dot(self.weights, values)))


def twins(binaries: Mapping[tuple[int, int], str]) -> dict[int, int]:
    """Return for every built commit the first commit with the same kernel (itself if it is the first)."""
    first: dict[str, int] = {}
    result: dict[int, int] = {}
    for (commit, layout), binary in sorted(binaries.items()):
        if layout == 0 and binary:
            result[commit] = first.setdefault(binary, commit)
    return result


def problem(
    history: History,
    readings: Readings,
    *,
    same: Mapping[int, int],
    marks: Mapping[int, str],
    proven: tuple[tuple[int, ...], ...],
    effect: float,
    blocks: int,
    counts: tuple[float, float, float],
) -> Problem:
    """Lay out cells and hypotheses. proven: sets of commits already found; blocks: stretches of time."""
    name = np.array([same.get(c, c) for c in readings.commit.tolist()])
    span = float(readings.time.max()) or 1.0
    block = np.minimum((readings.time / span * blocks).astype(np.int64), blocks - 1)
    key = np.stack([name, readings.layout, readings.testbed, block])
    cells, cell = np.unique(key, axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    _, binary = np.unique(cells[:2], axis=1, return_inverse=True)
    commits = sorted(set(cells[0].tolist()))
    tested = tuple(sorted({*commits, *marks, *same}))
    index = {c: i for i, c in enumerate(tested)}
    commit = np.array([index[c] for c in cells[0].tolist()])
    count = np.bincount(cell)
    time = np.bincount(cell, readings.time) / count
    classes = history.partition(tested)
    prior = classes.prior.copy()
    for c, verdict in marks.items():
        holds = classes.contains[:, index[c]]
        prior[holds if verdict == "good" else ~holds] = 0.0
    for c, first in same.items():
        if c != first:  # one culprit cannot lie between two equal binaries
            prior[classes.contains[:, index[c]] != classes.contains[:, index[first]]] = 0.0
    total = prior.sum()
    if total > 0:
        prior /= total
    bases: dict[bytes, int] = {b"": 0}
    forks = np.array([bases.setdefault(history.base(c), len(bases)) for c in tested])
    columns = [np.ones(len(commit))]
    for commits_of in proven:
        share = np.mean([[history.is_ancestor(p, c) for c in tested] for p in commits_of], axis=0)
        columns.append(share[commit])
    everything = max(1.0, float(history.candidate.sum()))
    common = np.array([[history.common(a, b) for b in tested] for a in tested]) / everything
    return Problem(
        readings=readings,
        tested=tested,
        commit=commit,
        binary=binary.reshape(-1),
        testbed=cells[2],
        time=time / span,
        fork=forks[commit],
        cell=cell,
        fixed=np.stack(columns, axis=1),
        classes=classes,
        prior=prior,
        design=classes.contains[:, commit].astype(float),
        span=span,
        effect=effect,
        threshold=readings.scale.threshold,
        common=common[np.ix_(commit, commit)],
        counts=counts,
        blocks=blocks,
    )


def _covariance(p: Problem, noise: Noise, diagonal: Floats) -> Floats | None:
    """Return the full covariance of the cells (T, T), None where it is diagonal."""
    forked = bool(p.fork.any())
    repeated = noise.unit > 0 and len(set(p.binary.tolist())) < len(p.binary)
    if not (noise.walk or noise.drift or noise.testbed or forked or repeated):
        return None
    k = np.diag(diagonal)
    if noise.unit:
        k += noise.unit**2 * (p.binary[:, None] == p.binary)
    if noise.walk:
        k += noise.walk**2 * p.common
    if noise.drift:
        k += noise.drift**2 * np.minimum(p.time[:, None], p.time)
    if noise.testbed:
        k += noise.testbed**2 * (p.testbed[:, None] == p.testbed)
    if forked:
        offset = max(p.threshold, p.effect / 2)
        k += offset**2 * ((p.fork[:, None] == p.fork) & (p.fork > 0))
    return k


def fit(p: Problem, noise: Noise) -> Fit:
    """Fit one noise hypothesis; see the module's text for the model."""
    r, count = p.readings, len(p.commit)
    variance = noise.boot**2 + 1.0 / r.precision
    a = 1.0 / variance
    total = np.bincount(p.cell, a, count)
    y = np.bincount(p.cell, a * r.location, count) / total
    within = float((a * (r.location - y[p.cell]) ** 2).sum())
    evidence = -0.5 * (within - float(np.log(a).sum()) + float(np.log(total).sum()))
    floor = (FLOOR * p.threshold) ** 2
    diagonal = 1.0 / total + floor
    k = _covariance(p, noise, diagonal)
    x, h = p.fixed, p.design
    if k is None:
        w = 1.0 / (diagonal + noise.unit**2)
        evidence += 0.5 * float(np.log(w).sum())
        hw, xw, yw = h * w, x.T * w, y * w
    else:
        lower = np.linalg.cholesky(k)
        evidence -= float(np.log(np.diag(lower)).sum())
        w = np.asarray(np.linalg.inv(k), dtype=np.float64)
        hw, xw, yw = h @ w, x.T @ w, w @ y
    info = xw @ x
    covariance: Floats = np.asarray(np.linalg.pinv(info), dtype=np.float64)
    beta: Floats = np.asarray(covariance @ (xw @ y), dtype=np.float64)
    cross = hw @ x
    gram = hw @ h.T - cross @ covariance @ cross.T
    slope = h @ yw - cross @ beta
    residual = float(y @ yw) - float(beta @ info @ beta)
    evidence -= 0.5 * (residual + float(np.linalg.slogdet(info + 1e-12 * np.eye(len(info)))[1]))
    single = _single(p, gram, slope)
    usable = np.flatnonzero(p.prior > 0)
    if len(usable) > PAIRS:
        usable = np.sort(usable[np.argsort(-single[usable], kind="stable")[:PAIRS]])
    pair = _pairs(p, gram[np.ix_(usable, usable)], slope[usable])
    return Fit(noise, w, y, gram, slope, beta, covariance, cross, evidence, single, usable, pair)


def _beyond(mean: Floats, sd: Floats, cut: float) -> Floats:
    """Return log P(|effect| >= cut) for normal effects."""
    sd = np.maximum(sd, 1e-300)
    up, down = log_ndtr((mean - cut) / sd), log_ndtr((-mean - cut) / sd)
    result: Floats = np.logaddexp(up, down)
    return result


def _single(p: Problem, gram: Floats, slope: Floats) -> Floats:
    """Return log Bayes factors (C,) of one culprit in each class."""
    tau2, cut = p.effect**2, CUT * p.threshold
    a = np.maximum(np.diag(gram), 0.0)
    v = 1.0 / (1.0 / tau2 + a)
    bf = -0.5 * np.log1p(tau2 * a) + 0.5 * slope**2 * v
    prior = _beyond(np.zeros(1), np.array([p.effect]), cut)[0]
    result: Floats = bf + _beyond(slope * v, np.sqrt(v), cut) - prior
    return result


def _pairs(p: Problem, gram: Floats, slope: Floats) -> Floats:
    """Return log Bayes factors (P, P) of two culprits in two classes, upper triangle, -inf elsewhere."""
    size = len(slope)
    result = np.full((size, size), -np.inf)
    i, j = np.triu_indices(size, 1)
    if not len(i):
        return result
    tau2, cut = p.effect**2, CUT * p.threshold
    m = np.diag(gram) + 1.0 / tau2
    off = gram[i, j]
    det = np.maximum(m[i] * m[j] - off**2, 1e-300)
    vi, vj, c = m[j] / det, m[i] / det, -off / det
    ei, ej = vi * slope[i] + c * slope[j], c * slope[i] + vj * slope[j]
    bf = -0.5 * np.log(det * tau2**2) + 0.5 * (slope[i] * ei + slope[j] * ej)
    prior = _beyond(np.zeros(1), np.array([p.effect]), cut)[0]
    bf += _beyond(ei, np.sqrt(vi), cut) + _beyond(ej, np.sqrt(vj), cut) - 2 * prior
    result[i, j] = bf
    return result


def _joint(p: Problem, f: Fit) -> tuple[float, Floats, Floats, float]:
    """Return unnormalised (none, single (C,), pair (P, P)) for one fit and the log of their scale."""
    with np.errstate(divide="ignore"):
        one = np.log(p.prior) + f.single + p.counts[1]
        share = np.log(p.prior[f.pairs])
    two = f.pair + share[:, None] + share + math.log(2) + p.counts[2]
    none = p.counts[0]
    top = max(none, float(one.max(initial=-np.inf)), float(two.max(initial=-np.inf)))
    return math.exp(none - top), np.exp(one - top), np.exp(two - top), top


def believe(p: Problem, noises: tuple[Noise, ...]) -> Belief:
    """Weigh noise hypotheses and culprits together."""
    fits = [fit(p, noise) for noise in noises]
    parts = [_joint(p, f) for f in fits]
    sums = [n + float(s.sum()) + float(q.sum()) for n, s, q, _ in parts]
    log_weight = np.array(
        [
            f.noise.log_prior + f.evidence + top + math.log(t)
            for f, (*_, top), t in zip(fits, parts, sums, strict=True)
        ]
    )
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    order = np.argsort(-weights, kind="stable")
    none, single = 0.0, np.zeros(len(p.prior))
    pair = np.zeros((len(p.prior), len(p.prior)))
    for g in order:
        n, s, q, _ = parts[g]
        share = weights[g] / sums[g]
        none += share * n
        single += share * s
        pair[np.ix_(fits[g].pairs, fits[g].pairs)] += share * q
    marginal = single + pair.sum(axis=0) + pair.sum(axis=1)
    return Belief(p, tuple(fits[g] for g in order), weights[order], none, single, pair, marginal)


def screen(p: Problem, testbeds: int, boot: tuple[tuple[float, float], ...] = BOOT) -> tuple[Noise, ...]:
    """Return the noise hypotheses worth carrying: first boots and binaries, then walk, drift and testbeds."""
    sd, effect = p.readings.run_sd, p.effect
    first = tuple(Noise(b * sd, u * effect, log_prior=math.log(pb * pu)) for b, pb in boot for u, pu in UNIT)
    belief = believe(p, first)
    kept = [f.noise for f, w in zip(belief.fits, belief.weights, strict=True) if w > 0.02][:4]
    second = [
        Noise(
            n.boot,
            n.unit,
            w * effect,
            d * effect,
            t * effect,
            n.log_prior + math.log(pw * pd * pt),
        )
        for n in kept
        for w, pw in WALK
        for d, pd in DRIFT
        for t, pt in (((0.0, 0.6), (0.7, 0.4)) if testbeds > 1 else ((0.0, 1.0),))
    ]
    second += [f.noise for f in belief.fits[len(kept) :]]
    belief = believe(p, tuple(second))
    chosen = [f.noise for f, w in zip(belief.fits, belief.weights, strict=True) if w > 0.01][:KEPT]
    return tuple(chosen)


def class_shares(history: History, classes: Partition, commit: int) -> Floats:
    """Return for each class the share (C,) of its prior weight that a commit contains."""
    inside: Mask = history.ancestors(commit) & (classes.label >= 0)
    count = len(classes.prior)
    part = np.bincount(classes.label[inside], history.weights[inside], minlength=count)
    chosen = classes.label >= 0
    whole = np.bincount(classes.label[chosen], history.weights[chosen], minlength=count)
    result: Floats = part / np.maximum(whole, 1e-300)
    return result
