"""Which hypotheses about the noise are worth carrying from one decision to the next."""

from __future__ import annotations

import math

import numpy as np

from bisector.search.design_matrix import DesignMatrix
from bisector.search.noise_priors import (
    BACKGROUND_PRIOR,
    DRIFT_PRIOR,
    binary_spreads,
    boot_spreads,
    testbed_spreads,
)
from bisector.search.posterior import NoiseHypothesis, Posterior, compute_posterior

SCREENING_PAIR_CLASSES = 16
"""Pairs are formed among so many classes while hypotheses are screened, where only their sum matters."""
MAX_NOISE_HYPOTHESES = 6
"""Noise hypotheses carried from one decision to the next."""
MAX_EXTRA_BACKGROUNDS = 2
"""Those with a background that are carried besides, where none is among them."""


def screen_noise_hypotheses(p: DesignMatrix, *, drifts: bool) -> tuple[NoiseHypothesis, ...]:
    """Return the noise hypotheses worth carrying: first boots and binaries, then walk, drift and testbeds.

    drifts: whether levels may change with time.
    """
    r, effect = p.readings, p.effect
    boots, units, testbeds = dict(boot_spreads(r)), binary_spreads(r, effect), testbed_spreads(r, effect)
    widest = testbeds[-1][0]
    # Testbeds that differ pass for boots that scatter: here they may differ by as much as they do.
    first = tuple(
        NoiseHypothesis(b, u, testbed=widest, log_prior=math.log(pb * pu))
        for b, pb in boots.items()
        for u, pu in units
    )
    posterior = compute_posterior(p, first, SCREENING_PAIR_CLASSES)
    kept = _above_weight(posterior, 0.02)[:4]
    # A walk or a drift that is not looked for yet passes for binaries that differ: try it without them, too.
    plain = [
        NoiseHypothesis(b, testbed=widest, log_prior=math.log(boots[b] * units[0][1]))
        for b in dict.fromkeys(n.boot for n in kept)
    ]
    wider = list(dict.fromkeys([*kept, *plain]))
    others = [n for n in first if n not in wider and posterior.weights[first.index(n)] > 0.005]
    second = [
        NoiseHypothesis(n.boot, n.unit, w * effect, d * effect, t, n.log_prior + math.log(pw * pd * pt))
        for n in wider
        for w, pw in BACKGROUND_PRIOR
        for d, pd in (DRIFT_PRIOR if drifts else ((0.0, 1.0),))
        for t, pt in testbeds
    ]
    final = compute_posterior(p, (*second, *others), SCREENING_PAIR_CLASSES)
    carried = _above_weight(final, 0.01)[:MAX_NOISE_HYPOTHESES]
    # What two culprits explain to the last digit leaves no room for a third that later trials may show.
    if not any(n.walk or n.unit for n in carried):
        carried += [n for n, _ in _rank_by_weight(final) if n.walk or n.unit][:MAX_EXTRA_BACKGROUNDS]
    return tuple(carried)


def _above_weight(posterior: Posterior, least: float) -> list[NoiseHypothesis]:
    """Return the noise hypotheses of at least some weight, most probable first."""
    return [noise for noise, weight in _rank_by_weight(posterior) if weight > least]


def _rank_by_weight(posterior: Posterior) -> list[tuple[NoiseHypothesis, float]]:
    """Return all noise hypotheses with their weights, most probable first."""
    order = np.argsort(-posterior.weights, kind="stable")
    return [(posterior.fits.noises[g], float(posterior.weights[g])) for g in order]
