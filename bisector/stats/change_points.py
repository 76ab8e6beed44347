"""Change points of a nightly series: did the level move, between which nights, by how much.

Each night gives the levels of several boots of the newest commit and, where there is one, of a boot of a
fixed reference kernel. The last 1 to MAX_AFTER nights are compared with the nights before them, by a robust
score: the sum of Huber's bounded scores (Huber 1964), over its standard deviation under first-order
autocorrelation. The largest of these scores is the generalised likelihood ratio of a step (Siegmund and
Venkatraman 1995) with a window (Lai 1995). Location and scale are medians; what a night is worth is learnt
from the nights before, never below what the scatter of its own boots allows.

The stage is cheap and may be wrong: a suspect is confirmed with fresh boots (`search.series`). The verdict of
a night uses no later night. All levels are in one unit; give logs where changes are relative.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bisector.model.dag import Floats
from bisector.model.decisions import Interval
from bisector.stats.night_contrasts import (
    MAX_AFTER,
    MAX_BEFORE,
    Contrasts,
    compare_last_nights,
    follow_nights,
)

SUSPECT_SCORE = 2.4
"""Score from which a night is suspect. Measured, not derived (tests/bench/series/README.md): false suspects,
which cost boots, against nights to detection. A year of one series has about five false ones."""
SAME_PLACE = 3.84
"""Places of the change whose squared score is at most this far below the best one's stay possible: the 95%
quantile of chi squared with one degree of freedom, the likelihood ratio interval (Siegmund 1988)."""
REFERENCE_SCORE = 2.0
"""Score from which the reference counts as moved: the usual 5%, two-sided. Low, because an alert that blames
a kernel for its testbed is worse than one that waits."""
BEYOND_REFERENCE_SCORE = 3.0
"""Score of the change beyond the reference's from which the kernel is suspect although the reference moved.
Chosen above SUSPECT_SCORE, since a testbed that has moved is in doubt."""
Z_95 = 1.96
"""Half width of a 95% interval, in standard deviations."""

Status = Literal["unmeasured", "learning", "steady", "suspect", "testbed suspect"]


@dataclass(frozen=True, slots=True)
class NightLevels:
    """One night. boots: level of each boot of the commit; reference: of each boot of the reference kernel.

    Both may be empty; a night that was not measured may as well be left out.
    """

    boots: tuple[float, ...]
    reference: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level. last_good, first_bad: indices of nights between which it lies: see SAME_PLACE.

    effect: the change with its 95% limits, in the unit of the levels; reference: the change of the reference
    over the same nights, None where it was not measured. score: see SUSPECT_SCORE. before, reference_before:
    the levels before the change.
    """

    last_good: int
    first_bad: int
    effect: Interval
    reference: Interval | None
    score: float
    before: float
    reference_before: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known after a night. night_sd: standard deviation of one night, None while it is learnt.

    change: the best place of a change where the status is 'suspect' or 'testbed suspect'. level: median of
    the last nights.
    """

    status: Status
    night_sd: float | None = None
    change: LevelChange | None = None
    level: float | None = None


def assess(nights: Sequence[NightLevels], settled: Sequence[int] = (), least: float = 0.0) -> Verdict:
    """Return the verdict of the last night; see `scan`. An empty series is 'unmeasured'."""
    return scan(nights, settled, least)[-1] if nights else Verdict("unmeasured")


def scan(
    nights: Sequence[NightLevels],
    settled: Sequence[int] = (),
    least: float = 0.0,
    *,
    of_level: bool = False,
) -> tuple[Verdict, ...]:
    """Return the verdict of each night by the nights up to it. Levels must be finite.

    settled: first nights of a new level, from changes that were confirmed or rejected: a baseline does not
    reach back beyond them. least: smallest change that matters, in the unit of the levels or, with
    `of_level`, as a part of the level before the change; what is surely less is no suspect.
    """
    verdicts = [Verdict("unmeasured")] * len(nights)
    place = [i for i, night in enumerate(nights) if night.boots]
    if not place:
        return tuple(verdicts)
    measured = [nights[i] for i in place]
    begins = [bisect_left(place, s) for s in sorted(settled)]
    with np.errstate(all="ignore"):  # levels without scatter divide by zero, huge ones overflow
        own = follow_nights([n.boots for n in measured], begins)
        reference = follow_nights([n.reference for n in measured], begins)
        contrast, beside = compare_last_nights(own), compare_last_nights(reference)
    for k, i in enumerate(place):
        sd = None if np.isnan(own.sd[k]) else float(max(own.sd[k], own.recent_sd[k]))
        level = float(own.baseline[k])
        if np.isnan(contrast.score[k]).all():
            verdicts[i] = Verdict("learning", sd, level=level)
            continue
        m = int(np.nanargmax(np.abs(contrast.score[k]))) + 1
        if abs(contrast.score[k, m - 1]) < SUSPECT_SCORE:
            verdicts[i] = Verdict("steady", sd, level=level)
            continue
        before = float(own.baseline[k - m])
        effect = _difference(contrast, k, m)
        other = _difference(beside, k, m)
        status: Status = "suspect"
        if max(abs(effect.low), abs(effect.high)) < least * (abs(before) if of_level else 1.0):
            status = "steady"
        elif _reference_explains(contrast, beside, k, m):
            status = "testbed suspect"
        last_good, first_bad = _where(contrast.score[k], k, int(own.begin[k]))
        change = LevelChange(
            place[last_good],
            place[first_bad],
            effect,
            None if math.isnan(other.estimate) else other,
            float(contrast.score[k, m - 1]),
            before,
            None if math.isnan(other.estimate) else float(reference.baseline[k - m]),
        )
        verdicts[i] = Verdict(status, sd, None if status == "steady" else change, level)
    return tuple(verdicts)


def _difference(contrast: Contrasts, k: int, m: int) -> Interval:
    """Return how far the last m nights lie from their baseline, with 95% limits; NaN where not known."""
    estimate, half = float(contrast.effect[k, m - 1]), Z_95 * float(contrast.sd[k, m - 1])
    return Interval(estimate - half, estimate, estimate + half)


def _where(score: Floats, k: int, begin: int) -> tuple[int, int]:
    """Return the last good and the first bad night of the change that night k shows; see SAME_PLACE.

    begin: the first night of the segment. If the oldest window is possible, the change may lie before it,
    somewhere in its baseline: then the last good night is the one before the baseline, or `begin`.
    """
    square = np.where(np.isnan(score), -math.inf, score**2)
    tried = np.flatnonzero(~np.isnan(score)) + 1
    possible = np.flatnonzero(square >= square.max() - SAME_PLACE) + 1
    placed = possible[-1] < tried[-1]
    last_good = k - int(possible[-1]) if placed else max(begin, k - MAX_AFTER - MAX_BEFORE)
    return last_good, k - int(possible[0]) + 1


def _reference_explains(own: Contrasts, beside: Contrasts, k: int, m: int) -> bool:
    """Return whether the reference moved the same way, and no more is left than chance can explain."""
    score = float(beside.score[k, m - 1] * np.sign(own.score[k, m - 1]))
    left = abs(own.effect[k, m - 1] - beside.effect[k, m - 1])
    beyond = BEYOND_REFERENCE_SCORE * math.hypot(own.sd[k, m - 1], beside.sd[k, m - 1])
    return bool(score >= REFERENCE_SCORE and not left > beyond)
