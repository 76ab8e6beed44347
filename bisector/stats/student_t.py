"""The scale of residuals that follow a Student t distribution: outliers get less weight, none is deleted.

The weights are those of iteratively reweighted least squares (Lange, Little and Taylor 1989).
"""

from __future__ import annotations

import math

import numpy as np

from bisector.model.dag import Floats

T_DEGREES_OF_FREEDOM = (3.0, 5.0, 10.0, 30.0)
"""Degrees of freedom considered for the runs' Student t distribution; 30 is practically Gauss."""
T_DEGREES_LOG_PRIOR = (-0.7, 0.0, 0.0, -0.2)
"""Log prior of each, up to a constant. Chosen: the extremes are somewhat less likely."""
FIT_STEPS = 12
"""Steps of the reweighted least squares; the last change a scale by less than one in a thousand."""


def fit_scale(residuals: Floats, weight: Floats, floor: float) -> tuple[float, float]:
    """Return (scale, degrees of freedom) of the t distribution that fits residuals best.

    weight: degrees of freedom of each residual; they sum to the total.
    """
    total = float(weight.sum())
    square = residuals**2
    nu = np.array(T_DEGREES_OF_FREEDOM)[:, None]
    start = max(float(np.median(square)) * 2.2, floor**2)
    s2 = np.full_like(nu, start)
    for _ in range(FIT_STEPS):
        w = weight / (nu + square / s2)
        s2 = np.maximum((nu + 1) * (w @ square)[:, None] / total, floor**2)
    tail = (nu[:, 0] + 1) / 2 * (np.log1p(square / (nu * s2)) @ weight)
    constant = np.array([math.lgamma((x + 1) / 2) - math.lgamma(x / 2) for x in T_DEGREES_OF_FREEDOM])
    constant -= 0.5 * np.log(nu * math.pi * s2)[:, 0]
    best = int(np.argmax(total * constant - tail + T_DEGREES_LOG_PRIOR))
    return math.sqrt(s2[best, 0]), T_DEGREES_OF_FREEDOM[best]
