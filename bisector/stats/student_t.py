"""Student's t distribution: the scale of residuals that follow it, and boots that lie far from the others.

Outliers get less weight, none is deleted. The weights are those of iteratively reweighted least squares
(Lange, Little and Taylor 1989).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median

from bisector.model.dag import Floats, Ints

T_DEGREES_OF_FREEDOM = (3.0, 5.0, 10.0, 30.0)
"""Degrees of freedom considered for the runs' Student t distribution; 30 is practically Gauss."""
T_DEGREES_LOG_PRIOR = (-0.7, 0.0, 0.0, -0.2)
"""Log prior of each, up to a constant. Chosen: the extremes are somewhat less likely."""
FIT_STEPS = 12
"""Steps of the reweighted least squares; the last change a scale by less than one in a thousand."""
BOOT_TAIL_LOG_PRIOR = (-1.0, -1.0, -1.0, 0.0)
"""Log prior of each for boots, up to a constant: as likely as not that boots scatter like normal values.
With it 2 to 3% of sets of 14 to 40 normal boots of two binaries show tails, and 26 and 55% of sets of 16 and
40 that have three degrees of freedom (400 each)."""
MAX_TAIL_FREEDOM = 10.0
"""Degrees of freedom up to which boots have heavy tails: beyond it all count alike."""
MIN_TAIL_DF = 12.0
"""Degrees of freedom of boots' scatter from which it is asked whether they have. One of eight boots that lies
apart may be one of a second mode; with 6, searches among modes 3:7 were half again as dear."""
ODD_SCALES, MAX_ODD_SHARE = 3.0, 0.125
"""Scales from which a boot lies apart, and the largest share of boots that do where they have heavy tails.
With three degrees of freedom 6% do; more are a mode. Of 14 boots in modes 3:7 one in twenty has so few."""
FITTED_LEVELS = 2
"""Levels that the distances of all boots are from, good's and bad's: so many degrees of freedom less."""
MIN_TAIL_KURTOSIS = 3.75
"""Fourth moment over the squared second one, about the mean, from which a t distribution is fitted; normal
values have 3. The median of three boots is one of them, whose distance is none, and so many short ones look
like tails: of 300 sets of 24 normal boots of 8 binaries 33% would show some without this, 6% do; of 24 boots
of 2 binaries 4 and 3%. Two modes have less, unless one is rarer than 18%."""


@dataclass(frozen=True, slots=True)
class BootTails:
    """Heavy tails of boots: their t distribution's degrees of freedom, and its squared scale without runs."""

    freedom: float
    variance: float

    def stretch(self, squares: Floats, ratio: Floats, precision: Floats) -> Floats:
        """Return by what (V,) the standard deviation of each boot is larger than the scale, 1 at least.

        A t variable is a normal one whose precision follows a gamma distribution; given its distance, the
        precision's mean is (nu + 1) / (nu + z^2).

        squares: (V,) expected squared distances of boots from the level of their commit, infinite where
        nothing is known, which counts as none; ratio: (V,) how much more the boots of their testbed scatter;
        precision: (V,) of their runs.
        """
        known = np.where(np.isinf(squares), 0.0, squares)
        z2 = known / (self.variance * ratio**2 + 1.0 / precision)
        result: Floats = np.sqrt(np.maximum((self.freedom + z2) / (self.freedom + 1.0), 1.0))
        return result


def fit_scale(
    residuals: Floats,
    weight: Floats,
    floor: float,
    log_prior: tuple[float, ...] = T_DEGREES_LOG_PRIOR,
) -> tuple[float, float]:
    """Return (scale, degrees of freedom) of the t distribution that fits residuals best.

    weight: degrees of freedom of each residual; they sum to the total. log_prior: of T_DEGREES_OF_FREEDOM.
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
    best = int(np.argmax(total * constant - tail + log_prior))
    return math.sqrt(s2[best, 0]), T_DEGREES_OF_FREEDOM[best]


def boot_tails(
    location: Floats, precision: Floats, cell: Ints, ratio: Floats, floor: float
) -> tuple[BootTails | None, Floats]:
    """Return the heavy tails of boots, None where they show none, and squared distances (V,) of boots.

    A distance is that from the median of the boots of one binary on one testbed, corrected for what the boot
    itself moves it; infinite for a boot that is alone.

    location, precision, cell, ratio: (V,) of boots, precision by run noise only; boots of one binary on one
    testbed share the cell; ratio: how much more those of the testbed scatter.
    """
    size = np.bincount(cell)
    spare = 1.0 - 1.0 / size[cell]
    several = spare > 0
    middle = median(location, cell, np.arange(len(size)))[cell]
    squares = np.full(len(location), math.inf)
    squares[several] = (location - middle)[several] ** 2 / spare[several]
    chosen = several & (ratio > 0)
    weight = spare[chosen]
    if weight.sum() < MIN_TAIL_DF:
        return None, squares
    from_mean = (location - (np.bincount(cell, location) / size)[cell])[chosen] ** 2 / weight
    ratio2 = ratio[chosen] ** 2
    return _tails(from_mean / ratio2, squares[chosen] / ratio2, weight, precision, floor), squares


def tails_of_levels(squares: Floats, precision: Floats, ratio: Floats, floor: float) -> BootTails | None:
    """Return the heavy tails of boots by their squared distances (V,) from levels that are two at least.

    precision, ratio: as of `boot_tails`.
    """
    chosen = ratio > 0
    spare = float(chosen.sum()) - FITTED_LEVELS
    if spare < MIN_TAIL_DF:
        return None
    z2 = squares[chosen] / ratio[chosen] ** 2
    return _tails(z2, z2, np.full(len(z2), spare / len(z2)), precision, floor)


def _tails(
    from_mean: Floats, from_median: Floats, weight: Floats, precision: Floats, floor: float
) -> BootTails | None:
    """Return the heavy tails of boots by their squared distances, of degrees of freedom that are the weights;
    None where they have none."""
    total = float(weight.sum())
    if weight @ from_mean**2 * total < MIN_TAIL_KURTOSIS * (weight @ from_mean) ** 2:
        return None
    scale, freedom = fit_scale(np.sqrt(from_median), weight, floor, BOOT_TAIL_LOG_PRIOR)
    variance = scale**2 - float(np.median(1.0 / precision))
    odd = float(weight[from_median > (ODD_SCALES * scale) ** 2].sum())
    if freedom > MAX_TAIL_FREEDOM or variance <= 0 or odd > MAX_ODD_SHARE * total:
        return None
    return BootTails(freedom, variance)
