"""The level profile: the level of every measured commit along history, and the steps between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bisector.model.decisions import Interval
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior

MAX_DRIFT_PER_THRESHOLD = 0.2
"""With more drift than this, in thresholds, levels measured at different times do not compare."""


@dataclass(frozen=True, slots=True)
class Level:
    """A measured commit's level in worse units relative to good's, with its standard deviation."""

    commit: int
    level: float
    sd: float


@dataclass(frozen=True, slots=True)
class Step:
    """The change from the newest measured ancestor to a measured commit, in worse units.

    Every candidate lies in at least one step, because bad is measured. Commits that lack part of good's
    history are left out, because they have an offset of their own.
    """

    before: int
    after: int
    change: float
    sd: float


def measured_levels(context: SearchContext, posterior: Posterior) -> list[Level]:
    """Return the levels of all measured commits in the order of history."""
    r, p = context.measured, posterior.design
    y, boot = posterior.fits.y[posterior.best], posterior.noise_rms("boot")
    good = [i for i, c in enumerate(p.commit) if p.tested[c] == context.graph.good]
    zero = float(np.mean(y[good])) if good else 0.0
    at = p.commit[p.cell]
    precision = 1 / ((boot * r.noise.boot[r.testbed]) ** 2 + 1 / r.precision)
    total = np.bincount(at, precision, len(p.tested))
    summed = np.bincount(at, precision * r.location, len(p.tested))
    measured = np.flatnonzero(total > 0).tolist()
    return [Level(p.tested[i], float(summed[i] / total[i]) - zero, float(total[i] ** -0.5)) for i in measured]


def relative_levels(context: SearchContext, posterior: Posterior) -> tuple[tuple[int, Interval], ...]:
    """Return the measured commits with their relative levels (good: 0), in the order of history."""
    return tuple(
        (x.commit, context.measured.scale.around(x.level, x.sd)) for x in measured_levels(context, posterior)
    )


def level_steps(context: SearchContext, posterior: Posterior) -> list[Step]:
    """Return all steps in the order of history."""
    dag = context.dag
    measured = [x for x in measured_levels(context, posterior) if not dag.fork_base(x.commit)]
    found = []
    for i, above in enumerate(measured):
        below = next((x for x in measured[:i][::-1] if dag.is_ancestor(x.commit, above.commit)), None)
        if below is not None:
            sd = math.hypot(above.sd, below.sd)
            found.append(Step(below.commit, above.commit, above.level - below.level, sd))
    return found


def largest_steps(context: SearchContext, posterior: Posterior, most: int = 3) -> list[tuple[int, Interval]]:
    """Return the largest steps for the worse: the number of candidates in each, and its relative change."""
    dag = context.dag
    worse = sorted((s for s in level_steps(context, posterior) if s.change > 0), key=lambda s: -s.change)
    result = []
    for s in worse[:most]:
        inside = dag.ancestors(s.after) & ~dag.ancestors(s.before) & dag.candidate
        result.append((int(inside.sum()), context.measured.scale.around(s.change, s.sd)))
    return result


def expected_steps_reaching_threshold(context: SearchContext, posterior: Posterior) -> float:
    """Return the expected number of steps that reach the threshold; infinite if the levels do not compare.

    Near zero it says that the loss is spread, unless a gain hides next to a loss. A background hypothesis
    cannot say that: under a wide random walk any small step may be a culprit that the walk compensates.
    """
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return math.inf
    binary_sd = math.sqrt(2) * posterior.noise_rms("binary")
    return sum(
        float(ndtr((s.change - context.threshold) / math.hypot(s.sd, binary_sd, context.resolution)))
        for s in level_steps(context, posterior)
    )
