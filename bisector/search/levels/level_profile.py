"""The level profile: the level of every measured commit along history, and the steps between them."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
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
class MeasuredLevel:
    """A measured commit's level in worse units relative to good's, with its standard deviation.

    sd: of its own boots and of what testbeds differ by; good's own boots are left out, so that good has one.
    """

    commit: int
    level: float
    sd: float


@dataclass(frozen=True, slots=True)
class Step:
    """The change from the newest measured ancestors to a measured commit, in worse units.

    Every candidate lies in at least one step, because bad is measured. Commits that lack part of good's
    history are left out, because they have an offset of their own. before: the newest measured ancestor, or
    the one nearest to `after` in level; beside: the others, on further branches that a merge brings in.
    least_known: the commit, among those the change is computed from, with the fewest boots for their scatter.
    """

    before: int
    beside: tuple[int, ...]
    after: int
    change: float
    sd: float
    least_known: int


class _Levels:
    """The levels of the commits that compare, next to those of the testbeds.

    rows: the row in the fit of good and of each commit that testbeds link with it, in the order of history.
    A commit that only testbeds of its own have measured has no level relative to good's. Without good, the
    first measured commit stands for it.
    """

    def __init__(self, context: SearchContext, posterior: Posterior) -> None:
        r, p = context.measured, posterior.design
        precision = 1 / ((posterior.noise_rms("boot") * p.readings.boot_ratio) ** 2 + 1 / r.precision)
        self.fit = grouping.fit_two_ways(r.location, precision, p.commit[p.cell], r.testbed)
        measured = np.flatnonzero(self.fit.group >= 0).tolist()
        rows = {p.tested[i]: i for i in measured}
        self.reference = context.graph.good if context.graph.good in rows else p.tested[measured[0]]
        group = self.fit.group[rows[self.reference]]
        self.rows = {c: i for c, i in rows.items() if self.fit.group[i] == group}

    def level(self, commit: int) -> float:
        """Return a level in worse units, a constant apart."""
        return float(self.fit.first[self.rows[commit]])

    def own_sd(self, commit: int) -> float:
        """Return the standard deviation of a level by its own boots."""
        return float(self.fit.total[self.rows[commit]] ** -0.5)

    def contrast(self, factors: Mapping[int, float]) -> tuple[float, float]:
        """Return the sum of levels times factors, which add up to 0, and its standard deviation."""
        rows = [self.rows[c] for c in factors]
        change = float(np.array([*factors.values()]) @ self.fit.first[rows])
        return change, math.sqrt(self.fit.contrast_variance(rows, [*factors.values()]))


def measured_levels(context: SearchContext, posterior: Posterior) -> list[MeasuredLevel]:
    """Return the levels of all measured commits that compare with good, in the order of history."""
    levels = _Levels(context, posterior)
    zero, found = levels.reference, []
    for c in levels.rows:
        if c == zero:
            found.append(MeasuredLevel(c, 0.0, levels.own_sd(c)))
        else:
            change, sd = levels.contrast({c: 1.0, zero: -1.0})
            found.append(MeasuredLevel(c, change, math.sqrt(sd**2 - levels.own_sd(zero) ** 2)))
    return found


def relative_levels(context: SearchContext, posterior: Posterior) -> tuple[tuple[int, Interval], ...]:
    """Return the measured commits with their relative levels (good: 0), in the order of history."""
    return tuple(
        (x.commit, context.measured.scale.around(x.level, math.hypot(x.sd, context.hidden_by_rounding)))
        for x in measured_levels(context, posterior)
    )


def level_steps(context: SearchContext, posterior: Posterior) -> list[Step]:
    """Return all steps in the order of history.

    A merge has several newest measured ancestors, one on each branch. Its step is the smallest change from
    one of them, less what the other branches bring in: that lies in the steps of these branches.
    """
    dag, levels = context.dag, _Levels(context, posterior)
    measured = [c for c in levels.rows if not dag.fork_base(c) and context.testable(c)]
    inside = {c: dag.ancestors(c) for c in measured}
    found = []
    for i, after in enumerate(measured):
        below = [c for c in measured[:i] if inside[after][c]]
        newest: list[int] = []
        while below:
            newest.append(below[-1])
            below = [c for c in below if not inside[newest[-1]][c]]
        if newest:
            before = max(newest, key=levels.level)
            beside = tuple(c for c in newest if c != before)
            factors = {after: 1.0, before: -1.0}
            counted = inside[before]
            for tip in beside:
                # Where no measured ancestor is shared, it is unknown what the branch adds.
                shared = [c for c in measured[:i] if counted[c] and inside[tip][c]]
                if shared:
                    factors[tip] = -1.0
                    factors[shared[-1]] = factors.get(shared[-1], 0.0) + 1.0
                counted = counted | inside[tip]
            least_known = max(factors, key=levels.own_sd)
            found.append(Step(before, beside, after, *levels.contrast(factors), least_known))
    return found


def commits_inside(context: SearchContext, step: Step) -> Mask:
    """Return the mask (n,) of the candidates of a step: those in no newest measured ancestor."""
    dag = context.dag
    inside: Mask = dag.ancestors(step.after) & dag.candidate
    for below in (step.before, *step.beside):
        inside &= ~dag.ancestors(below)
    return inside


def largest_steps(context: SearchContext, posterior: Posterior, most: int = 3) -> list[tuple[int, Interval]]:
    """Return the largest steps for the worse: the number of candidates in each, and its relative change."""
    worse = sorted((s for s in level_steps(context, posterior) if s.change > 0), key=lambda s: -s.change)
    around = context.measured.scale.around
    return [(int(commits_inside(context, s).sum()), around(s.change, s.sd)) for s in worse[:most]]


def likeliest_steps(
    context: SearchContext, posterior: Posterior, known: Container[int]
) -> list[tuple[Step, float]]:
    """Return the steps that may reach the threshold, each with the probability of that, the highest first.

    known: commits about which a proof has decided. None are left if the levels do not compare, because they
    drift or binaries scatter, and if each step is below the threshold by its own boots.
    """
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return []
    large = MIN_BINARY_PER_THRESHOLD * context.threshold
    if posterior.noise_reaches("binary", large) > 0.5:
        return []
    steps = [
        s
        for s in level_steps(context, posterior)
        if s.after not in known and s.change + CLEAR_SD * s.sd >= context.threshold
    ]
    rated = zip(steps, _reach_threshold(context, posterior, steps), strict=True)
    return sorted(rated, key=lambda x: -x[1])


def expected_steps_reaching_threshold(context: SearchContext, posterior: Posterior) -> float:
    """Return the expected number of steps that reach the threshold; infinite if the levels do not compare.

    Near zero it says that the loss is spread, unless a gain hides next to a loss. A background hypothesis
    cannot say that: under a wide random walk any small step may be a culprit that the walk compensates.
    """
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return math.inf
    return sum(_reach_threshold(context, posterior, level_steps(context, posterior)))


def _reach_threshold(context: SearchContext, posterior: Posterior, steps: Sequence[Step]) -> list[float]:
    """Return the probability of each step that it reaches the threshold."""
    further_sd = math.hypot(math.sqrt(2) * posterior.noise_rms("binary"), context.resolution)
    change, sd = np.array([s.change for s in steps]), np.array([s.sd for s in steps])
    result: list[float] = ndtr((change - context.threshold) / np.hypot(sd, further_sd)).tolist()
    return result
