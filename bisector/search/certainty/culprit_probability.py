"""The probability that is stated of a commit: that it is a culprit, given all that was measured.

A proof bounds errors in the long run: of all proofs at alpha 5% at most one in twenty is false. It says
nothing of this one. What is stated beside it is the posterior probability of the model in `posterior.py`, by
all visits, those of the search and of each proof among them, and given the other proven changes. So it falls
where a suspect failed, where neighbours explain the data as well, and where boots or binaries may scatter.

A search weighs six noise hypotheses, those above 1%: enough to choose a trial. A probability of 99% cannot
rest on that, since each of those left out may hold a percent. So here all of them are averaged, with their
prior weights (Bayesian model averaging: Hoeting, Madigan, Raftery and Volinsky 1999).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from bisector.search.cache import PlannerCache, Proven
from bisector.search.certainty.joint_by_group import log_joint_by_group
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.design_matrix import class_shares
from bisector.search.noise_screening import (
    SCREENING_PAIR_CLASSES,
    boot_and_binary_hypotheses,
    by_drift,
    combine_with_other_noise,
)
from bisector.search.sequential_test import Evidence


def culprit_probability(
    context: SearchContext, cache: PlannerCache, commits: Collection[int], proven: Proven, effect: float
) -> float:
    """Return the probability (0..1) that one of the commits is a culprit, given the other proven changes.

    proven: the commits of each of these; effect: scale of what they leave unexplained, in worse units.
    """
    key = ("culprit probability", context.data_key, tuple(sorted(commits)), proven, effect)
    return cache.get_or_compute(key, lambda: _culprit_probability(context, cache, commits, proven, effect))


def proof_probability(
    context: SearchContext, cache: PlannerCache, proofs: Sequence[Proof], proof: Proof, ends: Evidence
) -> float:
    """Return the probability that a proven culprit is one, given the other proofs. ends: their comparison."""
    others = [p for p in proofs if p is not proof]
    rest = ends.estimate - sum(p.evidence.estimate for p in others)
    effect = max(abs(rest), context.threshold)
    return culprit_probability(context, cache, proof.commits, tuple(p.commits for p in others), effect)


def _culprit_probability(
    context: SearchContext, cache: PlannerCache, commits: Collection[int], proven: Proven, effect: float
) -> float:
    drifts = any(n.drift for n in cache.posterior(context, proven, effect).fits.noises)
    p = cache.design(context, proven, effect, drifts=False)
    drifting = cache.design(context, proven, effect, drifts=True) if drifts else None
    noises = combine_with_other_noise(p, boot_and_binary_hypotheses(p), drifts=drifts)
    chosen = np.zeros(context.dag.n, dtype=bool)
    chosen[list(commits)] = True
    inside = class_shares(context.dag, p.classes, chosen)
    held, whole = [], []
    for design, some in by_drift(p, drifting, noises):
        groups = log_joint_by_group(design, some, SCREENING_PAIR_CLASSES)
        for joint, first, second in groups:
            missed = np.concatenate([[1.0], 1 - inside, (1 - inside[first]) * (1 - inside[second])])
            top = float(joint.max())
            odds = np.exp(joint - top)
            whole.append((top, float(odds.sum())))
            held.append((top, float((odds * (1 - missed)).sum())))
    best = max(top for top, _ in whole)
    parts = [sum(math.exp(top - best) * part for top, part in sums) for sums in (held, whole)]
    return min(1.0, parts[0] / parts[1])
