"""An oracle that knows a pool of real noise, both levels and the culprit's effect.

It takes the greedy most information per cost, as `bounds.oracle` does for Gauss, and stops at 1 - alpha. Its
likelihood is the pool's own distribution of two levels: a boot is one of the pool's starts, and its runs come
from that start's runs, smoothed by a kernel. It verifies nothing and proves nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from bisector.simulation.noise_model import SyntheticLab
from tests.bench.search.rivals import Bench, Outcome

Floats = NDArray[np.float64]

STRAY = 1e-3
"""Probability of a run from anywhere in the pool's range: no reading is impossible."""
MAX_RUNS = 16
"""Most runs in a boot that are considered at once."""
SIMULATED_BOOTS = 300
"""Boots by which the information of a visit is estimated, at each of the two levels."""
PRIORS = np.concatenate([[1e-6, 1e-4], np.linspace(0.01, 0.99, 50), [1 - 1e-4, 1 - 1e-6]])
MOST_RUNS = 20_000


class PoolLikelihood:
    """The density of a boot's runs. pool: starts of equally many runs, in percent about the common mean."""

    def __init__(self, pool: Floats) -> None:
        self.pool = pool
        count = pool.shape[1]
        q1, q3 = np.quantile(pool, (0.25, 0.75), axis=1)
        robust = np.minimum(pool.std(axis=1), (q3 - q1) / 1.34)
        robust = np.maximum(robust, 0.3 * float(np.median(robust)))
        self.width = np.maximum(0.9 * robust * count**-0.2, 1e-9)[:, None]  # Silverman (1986)
        self.range = 2.0 * float(np.ptp(pool)) + 1e-9

    def log_density(self, values: Floats) -> Floats:
        """Return log f(value | start) as (values, starts)."""
        z = (values[:, None, None] - self.pool) / self.width
        kernel = np.exp(-0.5 * z * z).mean(axis=2) / (self.width[:, 0] * math.sqrt(2 * math.pi))
        result: Floats = np.log((1 - STRAY) * kernel + STRAY / self.range)
        return result


class VisitInformation:
    """Bits that so many runs in one boot are expected to tell at a prior, by simulated boots."""

    def __init__(self, likelihood: PoolLikelihood, effect: float, random: np.random.Generator) -> None:
        pool = likelihood.pool
        self.llr = np.zeros((2, SIMULATED_BOOTS, MAX_RUNS + 1))  # of bad against good, after so many runs
        for bad in (0, 1):
            for boot in range(SIMULATED_BOOTS):
                start = pool[random.integers(len(pool))]
                runs = np.resize(np.roll(start, int(random.integers(len(start)))), MAX_RUNS)
                self.llr[bad, boot, 1:] = sequence_llr(likelihood, runs + bad * effect, effect)
        self.bits = np.array([self._bits(q) for q in PRIORS])

    def _bits(self, q: float) -> Floats:
        odds = math.log(q / (1 - q))
        left = np.zeros(MAX_RUNS + 1)
        for bad, weight in ((0, 1 - q), (1, q)):
            after = 1 / (1 + np.exp(-np.clip(self.llr[bad] + odds, -500, 500)))
            left += weight * _entropy(after).mean(axis=0)
        return np.maximum.accumulate(np.maximum(_entropy(np.array(q)) - left, 0.0))

    def at(self, q: float) -> Floats:
        """Return the bits after 0 .. MAX_RUNS runs."""
        return np.array([np.interp(q, PRIORS, self.bits[:, m]) for m in range(MAX_RUNS + 1)])


def sequence_llr(likelihood: PoolLikelihood, runs: Floats, effect: float) -> Floats:
    """Return the log likelihood ratio of bad against good after each run of one boot. runs: in percent."""
    good = likelihood.log_density(runs).cumsum(axis=0)
    bad = likelihood.log_density(runs - effect).cumsum(axis=0)
    result: Floats = logsumexp(bad, axis=1) - logsumexp(good, axis=1)
    return result


def _entropy(p: Floats) -> Floats:
    result: Floats = -(xlogy(p, p) + xlogy(1 - p, 1 - p)) / math.log(2)
    return result


def pool_oracle(
    lab: SyntheticLab,
    likelihood: PoolLikelihood,
    information: VisitInformation,
    effect: float,
    alpha: float = 0.05,
) -> Outcome:
    """Search a linear history with one culprit of a known effect, in percent."""
    bench, model = Bench(lab), lab.model
    n = len(lab.graph.shas)
    first = np.flatnonzero(np.array(lab.graph.candidate))
    closed = np.zeros(n)  # by commit, of bad against good, from boots that have ended
    live: list[float] = []
    llr = closed.copy()
    while True:
        p = _posterior(llr, first)
        if p.max() >= 1 - alpha or bench.runs > MOST_RUNS:
            return bench.outcome(int(first[np.argmax(p)]) in lab.culprits)
        bad = np.cumsum(p)  # P(the commit is bad), by position
        before = np.cumsum(_posterior(closed, first))
        near = {int(np.searchsorted(bad, q)) for q in (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)}
        near |= {int(np.searchsorted(first, c)) for c in bench.built}
        best, choice, fresh = -1.0, -1, True
        for i in (i for i in near if i < len(first) - 1):
            commit = int(first[i])
            bits = information.at(float(bad[i]))
            fixed = model.boot_seconds + (0 if commit in bench.built else model.build_seconds)
            rate = float(np.max(bits[1:] / (fixed + np.arange(1, MAX_RUNS + 1) * model.run_seconds)))
            if rate > best:
                best, choice, fresh = rate, commit, True
            if commit == bench.commit and 0 < len(live) < MAX_RUNS:  # go on in this boot
                bits = information.at(float(before[i]))[len(live) :]
                more = np.arange(1, len(bits))
                rate = float(np.max((bits[1:] - bits[0]) / (more * model.run_seconds), initial=0.0))
                if rate > best:
                    best, choice, fresh = rate, commit, False
        if fresh:
            closed, live = llr, []
            bench.visit(choice, fresh=True)
        live.append((bench.run() / model.level - 1) * 100)
        llr = closed.copy()
        llr[choice] += sequence_llr(likelihood, np.array(live), effect)[-1]


def _posterior(llr: Floats, first: NDArray[np.int64]) -> Floats:
    """Return P(the culprit is first[i]): every commit from it on is bad."""
    score = np.cumsum(llr[::-1])[::-1][first]
    p = np.exp(score - score.max())
    result: Floats = p / p.sum()
    return result
