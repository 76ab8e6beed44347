"""How much more or less runs and boots scatter on each of several testbeds than on all of them together.

With few data a testbed is taken to be like the others, with many it has its own noise: the variances are
moderated (see moderated_variance). A ratio, not a level, is learnt, so what is believed of the noise of all
together stays as it is with one testbed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisector.model.dag import Floats, Ints
from bisector.stats.moderated_variance import moderate
from bisector.stats.student_t import FIT_STEPS


@dataclass(frozen=True, slots=True)
class TestbedNoise:
    """Of each testbed (T,): its run and boot deviation over that of all; run_df: degrees of freedom."""

    __test__ = False  # not a pytest class

    run: Floats
    run_df: Floats
    boot: Floats

    @classmethod
    def alike(cls, testbeds: int, df: float) -> TestbedNoise:
        """Return testbeds that do not differ."""
        return cls(np.ones(testbeds), np.full(testbeds, df), np.ones(testbeds))

    def pooled_df(self, information: Floats, total: float) -> float:
        """Return the degrees of freedom of the run noise in a mean over testbeds, total at most.

        information: (T,) what each testbed brings to it. By Satterthwaite (1946), as in Welch's test: a mean
        that rests on one testbed has that testbed's degrees of freedom.
        """
        if len(information) == 1:
            return total
        share = information / information.sum()
        return min(total, 1.0 / float(share**2 @ (1.0 / np.maximum(self.run_df, 1e-9))))


def run_ratios(
    residuals: Floats, weight: Floats, testbed: Ints, testbeds: int, sd: float, nu: float, floor: float
) -> TestbedNoise:
    """Return the run noise of each testbed. sd, nu: scale and degrees of freedom of all residuals' t.

    residuals, weight, testbed: (R,) residuals of runs, the degrees of freedom of each, its testbed. A scale
    of t residuals is known as well as one of nu / (nu + 3) as many normal residuals (its Fisher information).
    """
    df = np.bincount(testbed, weight, testbeds).astype(float)
    square, scale2 = residuals**2, np.full(testbeds, sd**2)
    for _ in range(FIT_STEPS):
        w = weight / (nu + square / scale2[testbed])
        own = (nu + 1) * np.bincount(testbed, w * square, testbeds) / np.maximum(df, 1e-12)
        scale2 = np.where(df > 0, np.maximum(own, floor**2), scale2)
    efficiency = nu / (nu + 3)
    moderated, known = moderate(scale2, efficiency * df)
    return TestbedNoise(np.sqrt(moderated) / sd, known / efficiency, np.ones(testbeds))


def boot_ratios(location: Floats, precision: Floats, cell: Ints, testbed: Ints) -> Floats:
    """Return the boot spread of each testbed over that of all (T,); all 1 where boots say nothing about it.

    location, precision: (V,) of visits, precision by run noise only; cell: (V,) visits of one binary on one
    testbed share it. The scatter of boots beyond that of runs is moderated together with it, so boots that
    scatter no more than their runs explain change nothing.
    """
    testbeds = int(testbed.max()) + 1
    ratios = np.ones(testbeds)
    if testbeds == 1:
        return ratios
    size = np.bincount(cell)
    mean = np.bincount(cell, location) / size
    spare = 1.0 - 1.0 / size[cell]  # the degrees of freedom that each visit brings
    df = np.bincount(testbed, spare, testbeds).astype(float)
    if not df.sum():
        return ratios
    scatter = np.bincount(testbed, (location - mean[cell]) ** 2, testbeds)
    by_runs = np.bincount(testbed, spare / precision, testbeds).astype(float)
    boot2 = float((scatter - by_runs).sum() / df.sum())
    if boot2 <= 0:
        return ratios
    by_runs = by_runs / np.maximum(df, 1e-12)
    moderated, _ = moderate(scatter / np.maximum(df, 1e-12) / (boot2 + by_runs), df)
    own = (moderated * (boot2 + by_runs) - by_runs) / boot2
    result: Floats = np.where(df > 0, np.sqrt(np.maximum(own, 0.0)), 1.0)
    return result
