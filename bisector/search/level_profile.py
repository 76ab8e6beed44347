"""What was measured along history: the level of every measured commit, and the steps between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bisector.model.records import Interval
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior


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


def measured_levels(context: SearchContext, posterior: Posterior) -> list[Level]:
    """Return the measured commits in the order of history."""
    r, p = context.readings, posterior.design
    assert r is not None
    y, boot = posterior.fits.y[posterior.best], posterior.noise_rms("boot")
    good = [i for i, c in enumerate(p.commit) if p.tested[c] == context.graph.good]
    zero = float(np.mean(y[good])) if good else 0.0
    at = p.commit[p.cell]
    precision = 1 / (boot**2 + 1 / r.precision)
    total = np.bincount(at, precision, len(p.tested))
    summed = np.bincount(at, precision * r.location, len(p.tested))
    measured = np.flatnonzero(total > 0).tolist()
    return [Level(p.tested[i], float(summed[i] / total[i]) - zero, float(total[i] ** -0.5)) for i in measured]


def levels(context: SearchContext, posterior: Posterior) -> tuple[tuple[int, Interval], ...]:
    """Return the measured commits with their levels relative to good's, in the order of history."""
    assert context.readings is not None
    relative = context.readings.scale.to_relative_change
    return tuple(
        (x.commit, relative(x.level - 2 * x.sd, x.level, x.level + 2 * x.sd))
        for x in measured_levels(context, posterior)
    )


def steps(context: SearchContext, posterior: Posterior) -> list[Step]:
    """Return the steps in the order of history."""
    dag = context.dag
    measured = [x for x in measured_levels(context, posterior) if not dag.fork_base(x.commit)]
    found = []
    for i, above in enumerate(measured):
        below = next((x for x in measured[:i][::-1] if dag.is_ancestor(x.commit, above.commit)), None)
        if below is not None:
            sd = math.hypot(above.sd, below.sd)
            found.append(Step(below.commit, above.commit, above.level - below.level, sd))
    return found


def largest(context: SearchContext, posterior: Posterior, most: int = 3) -> list[tuple[int, Interval]]:
    """Return the largest steps for the worse: the candidates in it, and the relative change."""
    assert context.readings is not None
    dag, relative = context.dag, context.readings.scale.to_relative_change
    result = []
    for s in sorted((s for s in steps(context, posterior) if s.change > 0), key=lambda s: -s.change)[:most]:
        inside = dag.ancestors(s.after) & ~dag.ancestors(s.before) & dag.candidate
        change = relative(s.change - 2 * s.sd, s.change, s.change + 2 * s.sd)
        result.append((int(inside.sum()), change))
    return result


def expected_steps_reaching_threshold(context: SearchContext, posterior: Posterior) -> float:
    """Return how many steps are expected to reach the threshold, at most one for each.

    Near zero: the loss is spread, unless a gain hides next to a loss. A background hypothesis cannot say so
    by itself: under a wide random walk any small step may be a culprit that the walk takes back.
    """
    unit = posterior.noise_rms("unit")
    if posterior.noise_rms("drift") > 0.2 * context.threshold:
        return math.inf  # levels measured at different times do not compare
    return sum(
        float(
            ndtr((s.change - context.threshold) / math.hypot(s.sd, math.sqrt(2) * unit, context.resolution))
        )
        for s in steps(context, posterior)
    )
