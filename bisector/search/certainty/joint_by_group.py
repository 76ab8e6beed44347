"""Joint probabilities of culprits and hundreds of noise hypotheses, some of these at a time.

Most of the hypotheses have no weight: boots that scatter ten times as much as the data show, or not at all.
An upper bound tells many of them without their covariances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bisector.model.dag import Floats, Ints
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis
from bisector.search.posterior import (
    MIN_EFFECT_PER_THRESHOLD,
    average_visits,
    fit_noise_hypotheses,
    fixed_effect_precisions,
    joint_of,
    pair_factors,
)
from bisector.stats.linear.effect_factors import log_prior_beyond

HYPOTHESES_PER_GROUP = 8
"""Noise hypotheses that share the pairs of culprits that are considered."""
MAX_NUMBERS_AT_ONCE = 131_072
"""Numbers in the matrices of the noise hypotheses that are fitted at one time: a megabyte."""
MAX_LEFT_OUT_LOG_ODDS = 36.0
"""Groups less probable than another one by this log factor are left out: e^-36 is below 1e-15."""


class JointOfGroup(NamedTuple):
    """Joint probabilities of culprits and a group of noise hypotheses: their logs, as of `log_joint`.

    first, second: classes of the pairs of culprits, as in `NoiseFits`.
    """

    noises: tuple[NoiseHypothesis, ...]
    log: Floats
    first: Ints
    second: Ints


def log_joint_by_group(
    p: DesignMatrix, noises: tuple[NoiseHypothesis, ...], pairs: int
) -> Iterator[JointOfGroup]:
    """Yield the joint probabilities of groups of noise hypotheses, the most promising ones first.

    Each group has pairs of culprits of its own, among so many classes. Where the matrices are small, several
    groups are fitted at one time.
    """
    size = HYPOTHESES_PER_GROUP
    bounds = log_joint_bounds(p, noises)
    limits = np.array([bounds[at : at + size].max() for at in range(0, len(noises), size)])
    order = np.argsort(-limits, kind="stable")
    many = max(1, MAX_NUMBERS_AT_ONCE // (size * max(len(p.commit), len(p.prior)) ** 2))
    best = -math.inf
    blocks = [order[:1], *(order[at : at + many] for at in range(1, len(order), many))]
    for block in blocks:  # the first group by itself: it tells which ones have no weight
        chosen = [k for k in block if limits[k] >= best - MAX_LEFT_OUT_LOG_ODDS]
        if not chosen:
            return
        groups = [noises[k * size : (k + 1) * size] for k in chosen]
        f = fit_noise_hypotheses(p, tuple(n for group in groups for n in group), pairs=0)
        at = 0
        for group in groups:
            g = slice(at, at + len(group))
            at += len(group)
            first, second, pair = pair_factors(p, f.gram[g], f.slope[g], f.single[g], f.evidence[g], pairs)
            joint = joint_of(p, group, f.evidence[g], f.single[g], first, second, pair)
            best = max(best, float(joint.max()))
            yield JointOfGroup(group, joint, first, second)


def log_joint_bounds(p: DesignMatrix, noises: tuple[NoiseHypothesis, ...]) -> Floats:
    """Return upper bounds (G,) of the log of the sum of `log_joint` over all culprits.

    A density is highest where the data fit exactly, so its determinant bounds it. That of the covariances,
    fixed effects included, is at least that of their diagonal part, runs and boots. What is known of an
    effect can only be less than all of it beyond the least one.
    """
    boots, which = np.unique([n.boot for n in noises], return_inverse=True)
    _, diagonal, scatter = average_visits(p, boots, float(p.readings.location.mean()))
    info = (p.fixed.T / diagonal[:, None, :]) @ p.fixed + np.diag(fixed_effect_precisions(p))
    log = scatter - 0.5 * (np.log(diagonal).sum(axis=1) + np.linalg.slogdet(info)[1])
    beyond = log_prior_beyond(p.effect, MIN_EFFECT_PER_THRESHOLD * p.threshold)
    result: Floats = log[which] + np.array([n.log_prior for n in noises]) - 2 * min(beyond, 0.0)
    return result
