"""The probability that is stated of a commit: that it is a culprit, given all that was measured.

A proof bounds errors in the long run: of all proofs at alpha 5% at most one in twenty is false. It says
nothing of this one. What is stated beside it is the posterior probability of the model in `posterior.py`, by
all visits, those of the search and of each proof among them, and given the other proven changes. So it falls
where a suspect failed, where neighbours explain the data as well, and where boots or binaries may scatter.

A search weighs six noise hypotheses, those above 1%: enough to choose a trial. A probability of 99% cannot
rest on that, since each of those left out may hold a percent. So here all of them are averaged, with their
prior weights (Bayesian model averaging: Hoeting, Madigan, Raftery and Volinsky 1999). While the search goes
on, those are left out that together hold a thousandth.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from bisector.model.dag import CommitDag
from bisector.search.cache import PlannerCache, Proven
from bisector.search.certainty.joint_by_group import JointOfGroup, log_joint_by_group
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis, class_shares
from bisector.search.noise_screening import (
    SCREENING_PAIR_CLASSES,
    boot_and_binary_hypotheses,
    by_drift,
    combine_with_other_noise,
)
from bisector.search.sequential_test import Evidence

MAX_LEFT_OUT_WEIGHT = 1e-3
"""Weight, by the visits up to the last checkpoint, of the noise hypotheses that a passing statement leaves
out. In seven cells of the benchmark 15 to 40 of some 300 hold the rest."""


def culprit_probability(
    context: SearchContext, cache: PlannerCache, commits: Collection[int], proven: Proven, effect: float
) -> float:
    """Return the probability (0..1) that one of the commits is a culprit, given the other proven changes.

    proven: the commits of each of these; effect: scale of what they leave unexplained, in worse units.
    """
    return _averaged(context, cache, commits, proven, effect, passing=False)


def passing_probability(
    context: SearchContext, cache: PlannerCache, commits: Collection[int], proven: Proven, effect: float
) -> float:
    """Return `culprit_probability` to within about `MAX_LEFT_OUT_WEIGHT`, in a fraction of its time.

    For what is stated while the search goes on.
    """
    return _averaged(context, cache, commits, proven, effect, passing=True)


def proof_probability(
    context: SearchContext, cache: PlannerCache, proofs: Sequence[Proof], proof: Proof, ends: Evidence
) -> float:
    """Return the probability that a proven culprit is one, given the other proofs. ends: their comparison."""
    others = [p for p in proofs if p is not proof]
    rest = ends.estimate - sum(p.evidence.estimate for p in others)
    effect = max(abs(rest), context.threshold)
    return culprit_probability(context, cache, proof.commits, tuple(p.commits for p in others), effect)


def _averaged(
    context: SearchContext,
    cache: PlannerCache,
    commits: Collection[int],
    proven: Proven,
    effect: float,
    *,
    passing: bool,
) -> float:
    """Return `culprit_probability`, or `passing_probability`."""

    def compute() -> float:
        drifts = _drifts(context, cache, proven, effect)
        still, drifting = _designs(context, cache, proven, effect, drifts)
        noises = (
            _weighty_noises(context, cache, proven, effect, drifts)
            if passing
            else _every_noise(still, drifts)
        )
        return _share_of(commits, context.dag, still, _joint(still, drifting, noises))

    key = ("culprit probability", passing, context.data_key, tuple(sorted(commits)), proven, effect)
    return cache.get_or_compute(key, compute)


def _drifts(context: SearchContext, cache: PlannerCache, proven: Proven, effect: float) -> bool:
    """Return whether the search weighs any drift. It judges noise at checkpoints: the same until the next."""
    if context.goal.exact:
        return False
    return any(n.drift for n in cache.posterior(context, proven, effect).fits.noises)


def _designs(
    context: SearchContext,
    cache: PlannerCache,
    proven: Proven,
    effect: float,
    drifts: bool,
    judged: SearchContext | None = None,
) -> tuple[DesignMatrix, DesignMatrix | None]:
    """Return the design without drift, and with it where there may be any. judged: as of `design`."""
    still = cache.design(context, proven, effect, drifts=False, judged=judged)
    return still, cache.design(context, proven, effect, drifts=True, judged=judged) if drifts else None


def _every_noise(p: DesignMatrix, drifts: bool) -> tuple[NoiseHypothesis, ...]:
    return combine_with_other_noise(p, boot_and_binary_hypotheses(p), drifts=drifts)


def _weighty_noises(
    context: SearchContext, cache: PlannerCache, proven: Proven, effect: float, drifts: bool
) -> tuple[NoiseHypothesis, ...]:
    """Return the noise hypotheses that hold nearly all of the weight, the most probable first."""
    part = cache.until_checkpoint(context)

    def compute() -> tuple[NoiseHypothesis, ...]:
        still, drifting = _designs(part, cache, proven, effect, drifts, part)
        groups = list(_joint(still, drifting, _every_noise(still, drifts)))
        found = [noise for group in groups for noise in group.noises]
        log = np.concatenate([np.logaddexp.reduce(group.log, axis=1) for group in groups])
        weight = np.exp(log - log.max())
        order = np.argsort(-weight, kind="stable")
        held = np.cumsum(weight[order]) / weight.sum()
        return tuple(found[g] for g in order[: int(np.searchsorted(held, 1 - MAX_LEFT_OUT_WEIGHT)) + 1])

    return cache.get_or_compute(("weighty noises", part.data_key, proven, effect), compute)


def _joint(
    still: DesignMatrix, drifting: DesignMatrix | None, noises: Sequence[NoiseHypothesis]
) -> Iterator[JointOfGroup]:
    for design, some in by_drift(still, drifting, noises):
        yield from log_joint_by_group(design, some, SCREENING_PAIR_CLASSES)


def _share_of(
    commits: Collection[int], dag: CommitDag, p: DesignMatrix, groups: Iterable[JointOfGroup]
) -> float:
    """Return the part (0..1) of the joint probabilities in which one of the commits is a culprit."""
    chosen = np.zeros(dag.n, dtype=bool)
    chosen[list(commits)] = True
    inside = class_shares(dag, p.classes, chosen)
    held, whole = [], []
    for _, joint, first, second in groups:
        missed = np.concatenate([[1.0], 1 - inside, (1 - inside[first]) * (1 - inside[second])])
        top = float(joint.max())
        odds = np.exp(joint - top)
        whole.append((top, float(odds.sum())))
        held.append((top, float((odds * (1 - missed)).sum())))
    best = max(top for top, _ in whole)
    parts = [sum(math.exp(top - best) * part for top, part in sums) for sums in (held, whole)]
    return min(1.0, parts[0] / parts[1])
