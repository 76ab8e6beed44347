"""The level profile: the level of every measured commit along history, and the steps between them."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bisector.model.dag import Mask
from bisector.model.decisions import Interval
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.stats import grouping

MAX_DRIFT_PER_THRESHOLD = 0.2
"""With more drift than this, in thresholds, levels measured at different times do not compare."""
MIN_BINARY_PER_THRESHOLD = 0.25
"""Standard deviation of binaries, in thresholds, from which levels of several binaries hardly tell a step of
the threshold. If that is likely, a loss is not divided: it would take a build of each commit."""
CLEAR_SD = 4.0
"""Standard deviations by which a step lies below the threshold where its own boots leave no doubt: 3e-5."""


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
    before_sd: float
    after_sd: float

    @property
    def sd(self) -> float:
        """Return the standard deviation of the change."""
        return math.hypot(self.before_sd, self.after_sd)


def measured_levels(context: SearchContext, posterior: Posterior) -> list[Level]:
    """Return the levels of all measured commits in the order of history."""
    r, p = context.measured, posterior.design
    at = p.commit[p.cell]
    precision = 1 / ((posterior.noise_rms("boot") * r.noise.boot[r.testbed]) ** 2 + 1 / r.precision)
    _, gap = grouping.fit_two_ways(r.location, precision, at, r.testbed)
    location = r.location - (gap - gap[0])[r.testbed]
    total = np.bincount(at, precision, len(p.tested))
    level = np.bincount(at, precision * location, len(p.tested)) / np.maximum(total, 1e-300)
    zero = level[p.tested.index(context.graph.good)] if context.graph.good in p.tested else 0.0
    measured = np.flatnonzero(total > 0).tolist()
    return [Level(p.tested[i], float(level[i] - zero), float(total[i] ** -0.5)) for i in measured]


def relative_levels(context: SearchContext, posterior: Posterior) -> tuple[tuple[int, Interval], ...]:
    """Return the measured commits with their relative levels (good: 0), in the order of history."""
    return tuple(
        (x.commit, context.measured.scale.around(x.level, x.sd)) for x in measured_levels(context, posterior)
    )


def level_steps(context: SearchContext, posterior: Posterior) -> list[Step]:
    """Return all steps in the order of history.

    A merge has several newest measured ancestors, one on each branch. The smallest change from one of them is
    its step: what the others show more lies in the steps of that branch.
    """
    dag = context.dag
    measured = [
        x
        for x in measured_levels(context, posterior)
        if not dag.fork_base(x.commit) and context.testable(x.commit)
    ]
    inside = {x.commit: dag.ancestors(x.commit) for x in measured}
    found = []
    for i, above in enumerate(measured):
        below = [x for x in measured[:i] if inside[above.commit][x.commit]]
        newest: list[Level] = []
        while below:
            newest.append(below[-1])
            below = [x for x in below if not inside[newest[-1].commit][x.commit]]
        if newest:
            least = min(newest, key=lambda x: above.level - x.level)
            change = above.level - least.level
            found.append(Step(least.commit, above.commit, change, least.sd, above.sd))
    return found


def commits_inside(context: SearchContext, step: Step) -> Mask:
    """Return the mask (n,) of the candidates of a step."""
    dag = context.dag
    inside: Mask = dag.ancestors(step.after) & ~dag.ancestors(step.before) & dag.candidate
    return inside


def largest_steps(context: SearchContext, posterior: Posterior, most: int = 3) -> list[tuple[int, Interval]]:
    """Return the largest steps for the worse: the number of candidates in each, and its relative change."""
    worse = sorted((s for s in level_steps(context, posterior) if s.change > 0), key=lambda s: -s.change)
    around = context.measured.scale.around
    return [(int(commits_inside(context, s).sum()), around(s.change, s.sd)) for s in worse[:most]]


def likeliest_step(
    context: SearchContext, posterior: Posterior, known: Container[int]
) -> tuple[Step, float] | None:
    """Return the step that most probably reaches the threshold, and that probability.

    known: commits about which a proof has decided. None if the levels do not compare, because they drift or
    binaries scatter, and if each step is below the threshold by its own boots.
    """
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return None
    large = MIN_BINARY_PER_THRESHOLD * context.threshold
    if posterior.noise_reaches("binary", large) > 0.5:
        return None
    steps = [
        s
        for s in level_steps(context, posterior)
        if s.after not in known and s.change + CLEAR_SD * s.sd >= context.threshold
    ]
    rated = [(s, _reaches_threshold(context, posterior, s)) for s in steps]
    return max(rated, key=lambda x: x[1], default=None)


def expected_steps_reaching_threshold(context: SearchContext, posterior: Posterior) -> float:
    """Return the expected number of steps that reach the threshold; infinite if the levels do not compare.

    Near zero it says that the loss is spread, unless a gain hides next to a loss. A background hypothesis
    cannot say that: under a wide random walk any small step may be a culprit that the walk compensates.
    """
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return math.inf
    return sum(_reaches_threshold(context, posterior, s) for s in level_steps(context, posterior))


def _reaches_threshold(context: SearchContext, posterior: Posterior, step: Step) -> float:
    """Return the probability that a step reaches the threshold."""
    binary_sd = math.sqrt(2) * posterior.noise_rms("binary")
    return float(ndtr((step.change - context.threshold) / math.hypot(step.sd, binary_sd, context.resolution)))
