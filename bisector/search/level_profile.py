"""What was measured along history: the level of every measured commit, and the steps between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bisector.model.records import Interval
from bisector.search.context import View
from bisector.search.posterior import Belief


@dataclass(frozen=True, slots=True)
class Level:
    """A measured commit's level in worse units relative to good's, with its standard deviation."""

    commit: int
    level: float
    sd: float


@dataclass(frozen=True, slots=True)
class Step:
    """The change between a measured commit and its newest measured ancestor, in worse units.

    Every candidate lies in at least one of the steps, for bad is measured; only commits that contain good
    count, for the others have an offset of their own.
    """

    before: int
    after: int
    change: float
    sd: float


def curve(view: View, belief: Belief) -> list[Level]:
    """Return the measured commits in the order of history."""
    r, p = view.readings, belief.problem
    assert r is not None
    y, boot = belief.fits.y[belief.best], belief.noise_mean("boot")
    good = [i for i, c in enumerate(p.commit) if p.tested[c] == view.graph.good]
    zero = float(np.mean(y[good])) if good else 0.0
    at = p.commit[p.cell]
    precision = 1 / (boot**2 + 1 / r.precision)
    total = np.bincount(at, precision, len(p.tested))
    summed = np.bincount(at, precision * r.location, len(p.tested))
    measured = np.flatnonzero(total > 0).tolist()
    return [Level(p.tested[i], float(summed[i] / total[i]) - zero, float(total[i] ** -0.5)) for i in measured]


def levels(view: View, belief: Belief) -> tuple[tuple[int, Interval], ...]:
    """Return the measured commits with their levels relative to good's, in the order of history."""
    assert view.readings is not None
    relative = view.readings.scale.relative
    return tuple(
        (x.commit, relative(x.level - 2 * x.sd, x.level, x.level + 2 * x.sd)) for x in curve(view, belief)
    )


def steps(view: View, belief: Belief) -> list[Step]:
    """Return the steps in the order of history."""
    history = view.history
    measured = [x for x in curve(view, belief) if not history.base(x.commit)]
    found = []
    for i, above in enumerate(measured):
        below = next((x for x in measured[:i][::-1] if history.is_ancestor(x.commit, above.commit)), None)
        if below is not None:
            sd = math.hypot(above.sd, below.sd)
            found.append(Step(below.commit, above.commit, above.level - below.level, sd))
    return found


def largest(view: View, belief: Belief, most: int = 3) -> list[tuple[int, Interval]]:
    """Return the largest steps for the worse: the candidates in it, and the relative change."""
    assert view.readings is not None
    history, relative = view.history, view.readings.scale.relative
    result = []
    for s in sorted((s for s in steps(view, belief) if s.change > 0), key=lambda s: -s.change)[:most]:
        inside = history.ancestors(s.after) & ~history.ancestors(s.before) & history.candidate
        change = relative(s.change - 2 * s.sd, s.change, s.change + 2 * s.sd)
        result.append((int(inside.sum()), change))
    return result


def reaching(view: View, belief: Belief) -> float:
    """Return how many steps are expected to reach the threshold, at most one for each.

    Near zero: the loss is spread, unless a gain hides next to a loss. A background hypothesis cannot say so
    by itself: under a wide random walk any small step may be a culprit that the walk takes back.
    """
    unit = belief.noise_mean("unit")
    if belief.noise_mean("drift") > 0.2 * view.threshold:
        return math.inf  # levels measured at different times do not compare
    return sum(
        float(ndtr((s.change - view.threshold) / math.hypot(s.sd, math.sqrt(2) * unit, view.floor)))
        for s in steps(view, belief)
    )
