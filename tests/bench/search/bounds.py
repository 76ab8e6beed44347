"""What theory allows, and an oracle that knows every parameter.

d = effect / run standard deviation, n commits, V = build + boot, r = run; information in bits.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import norm

from bisector.simulation.noise_model import SyntheticLab
from tests.bench.search.rivals import Bench, Outcome


def entropy(p: float) -> float:
    """Binary entropy in bits."""
    return float(-(xlogy(p, p) + xlogy(1 - p, 1 - p)) / math.log(2))


def kl(p: float, q: float) -> float:
    """Binary relative entropy in nats."""
    return float(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)))


def bits_needed(n: int, alpha: float) -> float:
    return (1 - alpha) * math.log2(n) - entropy(alpha)


def _entropies(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bits, element by element."""
    bits: NDArray[np.float64] = -(xlogy(p, p) + xlogy(1 - p, 1 - p)) / math.log(2)
    return bits


def information(prior: NDArray[np.float64], snr: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bits that N(0,1) against N(sqrt(snr),1) tells about which it is, at prior P(second). Broadcasts."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights = weights / weights.sum()
    q = np.clip(prior, 1e-12, 1 - 1e-12)[..., None]
    d = np.sqrt(snr)[..., None]
    llr = d * nodes
    after0 = 1 / (1 + (1 - q) / q * np.exp(-np.clip(llr - d * d / 2, -500, 500)))
    after1 = 1 / (1 + (1 - q) / q * np.exp(-np.clip(llr + d * d / 2, -500, 500)))
    left = ((1 - q) * _entropies(after0) + q * _entropies(after1)) @ weights
    bits: NDArray[np.float64] = np.maximum(0.0, _entropies(q[..., 0]) - left)
    return bits


def fano_runs(n: int, d: float, alpha: float = 0.05) -> float:
    """Runs that are needed at least, all parameters known."""
    return bits_needed(n, alpha) / float(information(np.array(0.5), np.array(d * d)))


def cost_bound(n: int, d: float, visit: float, run: float, alpha: float = 0.05) -> float:
    """Cost that is needed at least, stopping inside a visit (Wald) and all parameters known."""

    def rate(a: float) -> float:
        return (1 - entropy(1 / (1 + math.exp(a)))) / (visit + 2 * run * a * math.tanh(a / 2) / d**2)

    best = minimize_scalar(lambda a: -rate(a), bounds=(1e-3, 20), method="bounded")
    return bits_needed(n, alpha) / -float(best.fun)


def certificate_runs(d: float, alpha: float = 0.05) -> float:
    """Runs of two sides with unknown means."""
    return 8 * kl(alpha, 1 - alpha) / d**2


@functools.lru_cache(maxsize=8)
def _table(d: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Information by prior and number of runs: (priors, runs, bits)."""
    priors = norm.cdf(np.linspace(-5, 5, 81))
    top = max(4.0, 40 / d**2)
    runs = np.unique(np.round(np.geomspace(1, top, 24)).astype(int))
    return priors, runs, information(priors[:, None], d * d * runs[None, :].astype(float))


def oracle(lab: SyntheticLab, effect: float, sd: float, alpha: float = 0.05) -> Outcome:
    """Greedy information per cost on a linear history with one culprit, told both levels and the noise."""
    bench = Bench(lab)
    model = lab.model
    base, step = lab.model.level, lab.model.level * effect / 100
    sigma = lab.model.level * sd / 100
    n = len(lab.graph.shas)
    llr = np.zeros(n)  # by commit, of bad against good
    priors, runs, bits = _table(effect / sd)
    first = np.array([c for c in range(n) if lab.graph.candidate[c]])
    while True:
        # culprit c: every commit >= c is bad
        score = np.cumsum(llr[::-1])[::-1][first]
        p = np.exp(score - score.max())
        p /= p.sum()
        if p.max() >= 1 - alpha or bench.runs > 20000:
            return bench.outcome(int(first[np.argmax(p)]) in lab.culprits)
        bad = np.cumsum(p)  # P(commit is bad), by position
        row = np.searchsorted(priors, np.clip(bad, priors[1], priors[-2]))
        near = {int(np.searchsorted(bad, q)) for q in (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)}
        near |= {int(np.searchsorted(first, c)) for c in bench.built}
        best, choice = -1.0, 0
        for i in near:
            if i >= len(first) - 1:
                continue
            commit = int(first[i])
            fixed = 0.0
            if commit != bench.commit:
                fixed = model.boot_seconds + (0 if commit in bench.built else model.build_seconds)
            gain = float(np.max(bits[row[i]] / (fixed + runs * model.run_seconds)))
            if gain > best:
                best, choice = gain, commit
        bench.visit(choice)
        llr[choice] += step / sigma**2 * (bench.run() - base - step / 2)
