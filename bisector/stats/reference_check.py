"""Whether a testbed still measures what it did: one more boot of a fixed kernel against its first boots.

The level of a boot is the median of its runs, on a log scale. It is compared with the levels of the reference
boots by the t distribution of a further boot (a prediction interval), the spread of its runs by an F test.
What is significant but too small to hurt a bisection is no reason: it compares commits on one testbed in
turn, so it takes a level that has moved since last month for what it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import fdtrc

from bisector.model.decisions import Interval
from bisector.stats.two_sample import t_interval

FALSE_ALARM_ALPHA = 0.001
"""Chance that a boot of a sound testbed stands out. It takes two in a row: of testbeds whose boots are normal
and independent, 0.7% then have a false alarm in a year of daily checks (200,000 drawn; 3 to 8 boots)."""
REFERENCE_BOOTS = 8
"""The first so many boots are the reference: a later boot then stands out by 5.7 of their deviations."""
LEAST_BOOTS = 3
"""Fewest boots that a further one is compared with; by their few degrees of freedom, it then takes a shift of
36 deviations."""
LEAST_SHIFT = 0.02
"""Shifts and spreads below this share of the level are left alone: thresholds are 5% in most workloads."""
LEAST_SPREAD_RATIO = 2.0
"""Least ratio of spreads that counts: less than twice the reference's only costs a bisection some more
runs."""

Judged = Literal["kept", "as before", "moved", "noisy"]
"""kept: there was too little to compare it with; moved: its level; noisy: the spread of its runs."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a boot says.

    change: of the level, with the interval at FALSE_ALARM_ALPHA. p: of the level, or of the spread.
    spread, usual: relative standard deviations of the runs, of this boot and of the reference. boots: of the
    reference.
    """

    judged: Judged
    boots: int
    change: Interval | None = None
    p: float | None = None
    spread: float = 0.0
    usual: float = 0.0

    @property
    def sound(self) -> bool:
        """Whether nothing stands out."""
        return self.judged in ("kept", "as before")


def judge(reference: Sequence[Sequence[float]], boot: Sequence[float]) -> Judgement:
    """Compare the runs of a boot with those of the reference's boots. All values are above zero."""
    known = [np.log(np.array(values)) for values in reference[:REFERENCE_BOOTS]]
    if len(known) < LEAST_BOOTS:
        return Judgement("kept", len(known))
    new = np.log(np.array(boot))
    levels = np.array([np.median(values) for values in known])
    n = len(levels)
    shift = float(np.median(new) - levels.mean())
    error = float(levels.std(ddof=1)) * math.sqrt(1 + 1 / n)
    low, high, p = t_interval(shift, error, n - 1, FALSE_ALARM_ALPHA)
    change = Interval(math.expm1(low), math.expm1(shift), math.expm1(high))
    within = sum(len(values) - 1 for values in known)
    usual = math.sqrt(sum(float(((v - v.mean()) ** 2).sum()) for v in known) / within) if within else 0.0
    spread = float(new.std(ddof=1)) if len(new) > 1 else 0.0
    if p <= FALSE_ALARM_ALPHA and abs(change.estimate) >= LEAST_SHIFT:
        return Judgement("moved", n, change, p, spread, usual)
    ratio = spread / usual if usual else math.inf
    if spread >= LEAST_SHIFT and ratio >= LEAST_SPREAD_RATIO:
        by_chance = float(fdtrc(len(new) - 1, within, ratio**2)) if usual else 0.0
        if by_chance <= FALSE_ALARM_ALPHA:
            return Judgement("noisy", n, change, by_chance, spread, usual)
    return Judgement("as before", n, change, p, spread, usual)
