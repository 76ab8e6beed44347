"""Log Bayes factors of one effect, or of two, against none, in G linear models at once.

Effects have a normal prior without the part below a least effect. gram: (G, C, C) and slope: (G, C) products
of C columns with each other and with the data, the fixed effects projected out. scale: standard deviation of
the prior; least: the least effect.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from bisector.model.dag import Floats, Ints
from bisector.stats.grouping import pairs_among

MAX_PAIR_LOG_ODDS = 14.0
"""Pairs less probable than the best one by this log factor are dropped: e^-14 is below 1e-6."""


def one_effect(gram: Floats, slope: Floats, scale: float, least: float) -> Floats:
    """Return log Bayes factors (G, C) of an effect of each column."""
    tau2 = scale**2
    a = np.maximum(np.diagonal(gram, axis1=1, axis2=2), 0.0)
    v = 1.0 / (1.0 / tau2 + a)
    bf = -0.5 * np.log1p(tau2 * a) + 0.5 * slope**2 * v
    result: Floats = bf + _log_probability_beyond(slope * v, v, least) - log_prior_beyond(scale, least)
    return result


def two_effects(
    gram: Floats,
    slope: Floats,
    single: Floats,
    evidence: Floats,
    prior: Floats,
    scale: float,
    least: float,
    most: int,
) -> tuple[Ints, Ints, Floats]:
    """Return columns (M,), (M,) and log Bayes factors (G, M) of pairs of effects of two columns.

    single: (G, C) `one_effect`; evidence: (G,) log likelihood without effects; prior: (C,) of an effect of
    each column; most: columns that pairs are formed among, those most probable under any of the G models.
    """
    usable = np.flatnonzero(prior > 0)
    if len(usable) > most:
        rank = (single[:, usable] + (evidence - evidence.max())[:, None]).max(axis=0)
        usable = np.sort(usable[np.argsort(-rank, kind="stable")[:most]])
    i, j = pairs_among(len(usable))
    first, second = usable[i], usable[j]
    if not len(first):
        return first, second, np.zeros((len(gram), 0))
    tau2 = scale**2
    m = np.diagonal(gram, axis1=1, axis2=2) + 1.0 / tau2
    mi, mj, si, sj = m[:, first], m[:, second], slope[:, first], slope[:, second]
    off = gram[:, first, second]
    det = np.maximum(mi * mj - off**2, 1e-300)
    ei, ej = (mj * si - off * sj) / det, (mi * sj - off * si) / det
    bf = -0.5 * np.log(det * tau2**2) + 0.5 * (si * ei + sj * ej)
    log_odds = (bf + evidence[:, None] + np.log(prior[first] * prior[second])).max(axis=0)
    kept = log_odds > log_odds.max() - MAX_PAIR_LOG_ODDS
    first, second = first[kept], second[kept]
    ei, ej, det = ei[:, kept], ej[:, kept], det[:, kept]
    bf = (
        bf[:, kept]
        + _log_probability_beyond(ei, mj[:, kept] / det, least)
        + _log_probability_beyond(ej, mi[:, kept] / det, least)
    )
    return first, second, bf - 2 * log_prior_beyond(scale, least)


def _log_probability_beyond(mean: Floats, variance: Floats, cut: float) -> Floats:
    """Return log P(|effect| >= cut) for normal effects with these means and variances."""
    sd = np.sqrt(np.maximum(variance, 1e-300))
    result: Floats = np.logaddexp(log_ndtr((mean - cut) / sd), log_ndtr((-mean - cut) / sd))
    return result


def log_prior_beyond(scale: float, least: float) -> float:
    """Return the log of the probability that the prior without the cut gives to effects beyond the least."""
    return math.log(2 * ndtr(-least / scale))
