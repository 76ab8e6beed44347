"""Select the few noise hypotheses that are kept from one decision to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bisector.model.dag import Floats
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis
from bisector.search.noise_priors import (
    BACKGROUND_PRIOR,
    DRIFT_PRIOR,
    binary_spreads,
    boot_spreads,
    testbed_spreads,
)
from bisector.search.posterior import fit_noise_hypotheses, log_joint

SCREENING_PAIR_CLASSES = 16
"""While hypotheses are screened, pairs of culprits are formed among so many classes: only the sum counts."""
MAX_NOISE_HYPOTHESES = 6
"""Noise hypotheses kept. Each costs a covariance matrix in every decision."""
MAX_EXTRA_BACKGROUNDS = 2
"""Hypotheses with background or binary spread that are added if none is among those kept."""


Ranked = list[tuple[NoiseHypothesis, float]]
"""Noise hypotheses with their posterior weights, the most probable first."""


def screen_noise_hypotheses(p: DesignMatrix, drifting: DesignMatrix | None) -> tuple[NoiseHypothesis, ...]:
    """Return the noise hypotheses to keep.

    First boot and binary spreads are combined. The best of these are combined with background, drift and
    testbeds. p: the visits; drifting: the same in blocks of time, None where levels cannot change with time.
    """
    boots, no_spread = dict(boot_spreads(p.readings)), binary_spreads(p.readings, p.effect)[0][1]
    # Unmodelled differences between testbeds look like boot spread, so here they may be as large as measured.
    widest = testbed_spreads(p.readings, p.effect)[-1][0]
    first = boot_and_binary_hypotheses(p, testbed=widest)
    ranked = _rank_by_weight(p, None, first)
    kept = _above_weight(ranked, 0.02)[:4]
    # Background and drift, still missing here, look like binary spread: so also try each boot spread without
    # it.
    plain = [
        NoiseHypothesis(b, testbed=widest, log_prior=math.log(boots[b] * no_spread))
        for b in dict.fromkeys(n.boot for n in kept)
    ]
    wider = list(dict.fromkeys([*kept, *plain]))
    weights = dict(ranked)
    others = [n for n in first if n not in wider and weights[n] > 0.005]
    second = combine_with_other_noise(p, wider, drifts=drifting is not None)
    final = _rank_by_weight(p, drifting, (*second, *others))
    carried = _above_weight(final, 0.01)[:MAX_NOISE_HYPOTHESES]
    # If two culprits explain the data exactly, no variance is left for a third that later trials may show.
    if not any(n.background or n.binary for n in carried):
        carried += [n for n, _ in final if n.background or n.binary][:MAX_EXTRA_BACKGROUNDS]
    return tuple(carried)


def boot_and_binary_hypotheses(p: DesignMatrix, testbed: float = 0.0) -> tuple[NoiseHypothesis, ...]:
    """Return all combinations of how far boots and binaries scatter. testbed: the spread of each."""
    return tuple(
        NoiseHypothesis(b, u, testbed=testbed, log_prior=math.log(pb * pu))
        for b, pb in boot_spreads(p.readings)
        for u, pu in binary_spreads(p.readings, p.effect)
    )


def combine_with_other_noise(
    p: DesignMatrix, noises: Sequence[NoiseHypothesis], *, drifts: bool
) -> tuple[NoiseHypothesis, ...]:
    """Return hypotheses, each with every background, drift and spread of testbeds. drifts: whether any is."""
    effect = p.effect
    others = [
        (w * effect, d * effect, t, math.log(pw * pd * pt))
        for w, pw in BACKGROUND_PRIOR
        for d, pd in (DRIFT_PRIOR if drifts else ((0.0, 1.0),))
        for t, pt in testbed_spreads(p.readings, effect)
    ]
    return tuple(
        NoiseHypothesis(n.boot, n.binary, background, drift, testbed, n.log_prior + log_prior)
        for n in noises
        for background, drift, testbed, log_prior in others
    )


def by_drift(
    p: DesignMatrix, drifting: DesignMatrix | None, noises: Sequence[NoiseHypothesis]
) -> list[tuple[DesignMatrix, tuple[NoiseHypothesis, ...]]]:
    """Return the noise hypotheses without drift and those with drift, where there are any, with their design.

    Without drift a binary is one cell, whenever it was measured: few cells, and often no covariances at all.
    """
    still, moving = tuple(n for n in noises if not n.drift), tuple(n for n in noises if n.drift)
    parts = ((p, still), (drifting, moving))
    return [(design, some) for design, some in parts if design is not None and some]


def _above_weight(ranked: Ranked, least: float) -> list[NoiseHypothesis]:
    """Return the noise hypotheses above some weight, the most probable first."""
    return [noise for noise, weight in ranked if weight > least]


def _rank_by_weight(
    p: DesignMatrix, drifting: DesignMatrix | None, noises: Sequence[NoiseHypothesis]
) -> Ranked:
    """Return all noise hypotheses with their weights, the most probable first."""
    parts = by_drift(p, drifting, noises)
    log = np.concatenate([_log_weights(design, some) for design, some in parts])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    found = [noise for _, some in parts for noise in some]
    return [(found[g], float(weight[g])) for g in np.argsort(-weight, kind="stable")]


def _log_weights(p: DesignMatrix, noises: tuple[NoiseHypothesis, ...]) -> Floats:
    """Return logs (G,), up to one constant, of the posterior probabilities of noise hypotheses."""
    joint = log_joint(p, fit_noise_hypotheses(p, noises, SCREENING_PAIR_CLASSES))
    result: Floats = np.logaddexp.reduce(joint, axis=1)
    return result
