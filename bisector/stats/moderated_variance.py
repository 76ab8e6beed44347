"""Moderated variances: those of several groups, each drawn towards the pool as far as it has few data.

The model is Smyth's (2004, Stat. Appl. Genet. Mol. Biol. 3(1) 3, 'limma'): a group's true variance follows a
scaled inverse chi squared distribution with d0 degrees of freedom about the pool's, so the best estimate is
(d0 s0^2 + d s^2) / (d0 + d). Smyth fits d0 to thousands of genes. A lab has two or three testbeds, so d0 is
summed over here, by its likelihood (a scaled F distribution).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from bisector.model.dag import Floats

PRIOR_DF = (2.0, 6.0, 20.0, math.inf)
"""Degrees of freedom d0 considered. The ratio of two groups' standard deviations is the root of an F(d0, d0)
variable: its 95% limit is 6.2, 2.4, 1.6 and 1. So machines of one kind, and a laptop beside a server, are
both ordinary."""
PRIOR_WEIGHT = (0.2, 0.2, 0.2, 0.4)
"""Prior probability of each. Chosen: that all testbeds are alike is the likeliest single case, and three
fifths are left for the others."""
_STEPS = 30
"""Steps of the fixed point for s0; twenty settle it to 1e-6."""


def moderate(variance: Floats, df: Floats) -> tuple[Floats, Floats]:
    """Return the moderated variances (T,) and their degrees of freedom (T,).

    variance, df: (T,) of each group; df may be 0 where nothing is known, the sum must not be. The pool tells
    no group more than the other groups have.
    """
    total = float(df.sum())
    known = df > 0
    pooled = float(variance[known] @ df[known]) / total
    if pooled <= 0 or known.sum() < 2:
        return np.full(len(df), pooled), np.full(len(df), total)
    s2 = np.where(known, np.maximum(variance, 1e-12 * pooled), pooled)
    weights, found, dfs = [], [], []
    for d0, prior in zip(PRIOR_DF, PRIOR_WEIGHT, strict=True):
        own = _moderated(s2, df, d0, pooled)
        weights.append(math.log(prior) + _log_likelihood(s2[known], df[known], d0, own[0]))
        found.append(own[1])
        dfs.append(df + np.minimum(d0, total - df))
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    return weight @ np.array(found), 1.0 / (weight @ (1.0 / np.array(dfs)))


def _moderated(s2: Floats, df: Floats, d0: float, pooled: float) -> tuple[float, Floats]:
    """Return s0^2, the most likely one for this d0, and the moderated variances."""
    if math.isinf(d0):
        return pooled, np.full(len(df), pooled)
    known = df > 0
    s0 = pooled
    for _ in range(_STEPS):  # where the derivative of the likelihood is zero
        s0 = float(known.sum() / ((d0 + df) / (d0 * s0 + df * s2))[known].sum())
    result: Floats = (d0 * s0 + df * s2) / (d0 + df)
    return s0, result


def _log_likelihood(s2: Floats, df: Floats, d0: float, s0: float) -> float:
    """Return the log likelihood of variances, up to what does not depend on d0 and s0."""
    if math.isinf(d0):
        return float((-df / 2 * math.log(s0) - df * s2 / (2 * s0) - df / 2 * math.log(2.0)).sum())
    each = gammaln((d0 + df) / 2) - gammaln(d0 / 2) + d0 / 2 * math.log(d0 * s0)
    return float((each - (d0 + df) / 2 * np.log(d0 * s0 + df * s2)).sum())
