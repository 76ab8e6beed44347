"""Which hypotheses about the noise are worth carrying from one decision to the next."""

from __future__ import annotations

import math

import numpy as np

from bisector.search.design_matrix import Problem
from bisector.search.noise_priors import DRIFT, WALK, boot_spreads, testbed_spreads, unit_spreads
from bisector.search.posterior import Belief, Noise, believe

PAIRS = 16
"""Pairs are formed among so many classes while hypotheses are screened, where only their sum matters."""
KEPT = 6
"""Noise hypotheses carried from one decision to the next."""
SPARE = 2
"""Those with a background that are carried besides, where none is among them."""


def screen(p: Problem, *, drifts: bool) -> tuple[Noise, ...]:
    """Return the noise hypotheses worth carrying: first boots and binaries, then walk, drift and testbeds.

    drifts: whether levels may change with time.
    """
    r, effect = p.readings, p.effect
    boots, units, testbeds = dict(boot_spreads(r)), unit_spreads(r, effect), testbed_spreads(r, effect)
    widest = testbeds[-1][0]
    # Testbeds that differ pass for boots that scatter: here they may differ by as much as they do.
    first = tuple(
        Noise(b, u, testbed=widest, log_prior=math.log(pb * pu)) for b, pb in boots.items() for u, pu in units
    )
    belief = believe(p, first, PAIRS)
    kept = _best(belief, 0.02)[:4]
    # A walk or a drift that is not looked for yet passes for binaries that differ: try it without them, too.
    plain = [
        Noise(b, testbed=widest, log_prior=math.log(boots[b] * units[0][1]))
        for b in dict.fromkeys(n.boot for n in kept)
    ]
    wider = list(dict.fromkeys([*kept, *plain]))
    others = [n for n in first if n not in wider and belief.weights[first.index(n)] > 0.005]
    second = [
        Noise(n.boot, n.unit, w * effect, d * effect, t, n.log_prior + math.log(pw * pd * pt))
        for n in wider
        for w, pw in WALK
        for d, pd in (DRIFT if drifts else ((0.0, 1.0),))
        for t, pt in testbeds
    ]
    final = believe(p, (*second, *others), PAIRS)
    carried = _best(final, 0.01)[:KEPT]
    # What two culprits explain to the last digit leaves no room for a third that later trials may show.
    if not any(n.walk or n.unit for n in carried):
        carried += [n for n, _ in _ranked(final) if n.walk or n.unit][:SPARE]
    return tuple(carried)


def _best(belief: Belief, least: float) -> list[Noise]:
    """Return the noise hypotheses of at least some weight, most probable first."""
    return [noise for noise, weight in _ranked(belief) if weight > least]


def _ranked(belief: Belief) -> list[tuple[Noise, float]]:
    """Return all noise hypotheses with their weights, most probable first."""
    order = np.argsort(-belief.weights, kind="stable")
    return [(belief.fits.noises[g], float(belief.weights[g])) for g in order]
