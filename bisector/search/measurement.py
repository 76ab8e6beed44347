"""The measurement model: units, run noise, and the robust level of each visit.

Each visit (one boot) is summarised by a robust location and its precision. Runs follow a Student t
distribution. An outlier is never deleted; it gets less weight (IRLS weights of the t likelihood: Lange,
Little and Taylor 1989). Under the instruction clock, repetition k is compared with repetition k. All levels
are in 'worse units': the log of the value where the metric is positive and the threshold relative, the value
itself otherwise; the sign makes larger worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median

from bisector.model.dag import Floats, Ints
from bisector.model.decisions import Interval, Purpose
from bisector.model.goal import Goal
from bisector.model.state import State, Visit
from bisector.stats.variance_components import VarianceComponents

RESOLUTION_PER_THRESHOLD = 0.02
"""Standard deviation, in thresholds, below which nothing is resolved. Ten such differences in a row stay
below a fifth of the threshold, and a clock without noise gets a variance to divide by."""
T_DEGREES_OF_FREEDOM = (3.0, 5.0, 10.0, 30.0)
"""Degrees of freedom considered for the runs' Student t distribution; 30 is practically Gauss."""
T_DEGREES_LOG_PRIOR = (-0.7, 0.0, 0.0, -0.2)
"""Log prior of each, up to a constant."""
NORMAL_SD_PER_MEDIAN_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation (Hampel 1974)."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How values become worse units. threshold: in these; base: level that relative changes refer to."""

    log: bool
    sign: float
    threshold: float
    base: float

    def to_worse_units(self, values: Floats) -> Floats:
        """Turn values into worse units, of the same shape."""
        result: Floats = self.sign * (np.log(values) if self.log else values)
        return result

    def to_relative_change(self, low: float, estimate: float, high: float) -> Interval:
        """Return a difference in worse units as a relative change of the metric itself."""

        def back(v: float) -> float:
            v *= self.sign
            return math.expm1(min(v, 50.0)) if self.log else v / self.base

        a, b = sorted((back(low), back(high)))
        return Interval(a, min(max(back(estimate), a), b), b)

    def around(self, estimate: float, sd: float) -> Interval:
        """Return the relative change for a difference in worse units, with limits of two sd."""
        return self.to_relative_change(estimate - 2 * sd, estimate, estimate + 2 * sd)


@dataclass(frozen=True, slots=True)
class Readings:
    """All visits with samples, as arrays (V,) in the order of the state.

    commit, layout: as in the state; testbed: index into testbeds; time: seconds since the first visit;
    location: in worse units; precision: of the location about the boot's own level (run noise only); runs:
    number of samples. run_sd: standard deviation of one run, run_df its degrees of freedom; nu: degrees of
    freedom of the runs' t distribution.
    """

    scale: Scale
    boot: tuple[str, ...]
    purpose: tuple[Purpose, ...]
    commit: Ints
    layout: Ints
    testbed: Ints
    testbeds: tuple[str, ...]
    time: Floats
    location: Floats
    precision: Floats
    runs: Ints
    run_sd: float
    run_df: float
    nu: float

    def precision_per_run(self) -> float:
        """Return the precision that one more run adds to its boot's level."""
        return 1.0 / self.run_sd**2


def group_combinations(*parts: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the combinations of labels that occur, sorted, and the index (V,) of each entry's combination.

    parts: labels (V,), each at least 0. One number stands for a combination, which is far faster than
    comparing columns.
    """
    sizes = tuple(int(part.max()) + 1 for part in parts)
    key, place = np.unique(np.ravel_multi_index(parts, sizes), return_inverse=True)
    return np.unravel_index(key, sizes), place


def average_cells(weight: Floats, location: Floats, cell: Ints) -> tuple[Floats, Floats, Floats]:
    """Average visits into cells, under G hypotheses at once.

    weight: (G, V); location, cell: (V,). Returns the weighted means (G, T) of the cells, their total weights
    (G, T), and the log likelihood (G,) of the scatter within cells.
    """
    member = np.zeros((len(cell), int(cell.max()) + 1))
    member[np.arange(len(cell)), cell] = 1.0
    total = weight @ member
    mean = (weight * location) @ member / total
    scatter = (weight * (location - mean[:, cell]) ** 2).sum(axis=1)
    log_likelihood = -0.5 * (scatter - np.log(weight).sum(axis=1) + np.log(total).sum(axis=1))
    return mean, total, log_likelihood


def scale_of(goal: Goal, values: Floats, level: float) -> Scale:
    """Choose the units of the metric. level: a typical value at the good end.

    Where a fix is looked for, what is better for people counts as worse.
    """
    threshold = goal.metric.threshold
    sign = 1.0 if (goal.metric.better == "lower") == (goal.find == "regression") else -1.0
    positive = bool(len(values)) and bool(values.min() > 0)
    if threshold.relative and positive:
        return Scale(True, sign, math.log1p(threshold.value), 1.0)
    base = abs(level) or 1.0
    return Scale(False, sign, threshold.value * base if threshold.relative else threshold.value, base)


def _fit_student_t(residuals: Floats, weight: Floats, floor: float) -> tuple[float, float]:
    """Return (scale, degrees of freedom) of the t distribution that fits residuals best.

    weight: degrees of freedom of each residual; they sum to the total.
    """
    total = float(weight.sum())
    square = residuals**2
    nu = np.array(T_DEGREES_OF_FREEDOM)[:, None]
    start = max(float(np.median(square)) * 2.2, floor**2)
    s2 = np.full_like(nu, start)
    for _ in range(12):
        w = weight / (nu + square / s2)
        s2 = np.maximum((nu + 1) * (w @ square)[:, None] / total, floor**2)
    tail = (nu[:, 0] + 1) / 2 * (np.log1p(square / (nu * s2)) @ weight)
    constant = np.array([math.lgamma((x + 1) / 2) - math.lgamma(x / 2) for x in T_DEGREES_OF_FREEDOM])
    constant -= 0.5 * np.log(nu * math.pi * s2)[:, 0]
    best = int(np.argmax(total * constant - tail + T_DEGREES_LOG_PRIOR))
    return math.sqrt(s2[best, 0]), T_DEGREES_OF_FREEDOM[best]


def _subtract_repetition_profile(y: Floats, visit: Ints, repetition: Ints) -> Floats:
    """Subtract what the repetition number explains: its median difference from a reference repetition.

    The reference is the repetition that most visits have, the earliest of these. Warm-up and flagged runs
    leave gaps in the numbers.
    """
    reference = int(np.argmax(np.bincount(repetition)))
    own = np.full(int(visit.max()) + 1, math.nan)
    at = repetition == reference
    own[visit[at]] = y[at]
    shift = np.zeros(int(repetition.max()) + 1)
    for k in np.unique(repetition[~at]).tolist():
        difference = (y - own[visit])[repetition == k]
        difference = difference[~np.isnan(difference)]
        if len(difference):
            shift[k] = np.median(difference)
    result: Floats = y - shift[repetition]
    return result


def summarise_visits(state: State, calibrated_noise: VarianceComponents | None = None) -> Readings | None:
    """Summarise the visits of a state; None while there is no sample.

    calibrated_noise: from an A/A measurement; it counts with its degrees of freedom.
    """
    visits: list[Visit] = []
    clean: list[list[tuple[int, float]]] = []
    for v in state.visits:
        kept = [(k, y) for k, y in v.samples if math.isfinite(y)]
        if kept:
            visits.append(v)
            clean.append(kept)
    if not visits:
        return None
    sizes = np.array([len(c) for c in clean])
    visit = np.repeat(np.arange(len(visits)), sizes)
    raw = np.array([y for c in clean for _, y in c])
    repetition = np.array([k for c in clean for k, _ in c])
    commit = np.array([v.commit for v in visits])
    layout = np.array([v.layout for v in visits])
    at_good = raw[commit[visit] == state.graph.good]
    scale = scale_of(state.goal, raw, float(np.median(at_good if len(at_good) else raw)))
    y = scale.to_worse_units(raw)
    if state.goal.clock == "instructions":
        y = _subtract_repetition_profile(y, visit, repetition)
    names = sorted({v.testbed for v in visits})
    started = np.array([v.at[0] if v.at else v.started for v in visits])
    ends = np.isin(commit, (state.graph.good, state.graph.bad))
    _, cell = group_combinations(commit, layout)
    location, precision, run_sd, df, nu = _estimate_locations(
        y, visit, cell, ends, sizes, scale, calibrated_noise
    )
    return Readings(
        scale=scale,
        boot=tuple(v.boot for v in visits),
        purpose=tuple(v.purpose for v in visits),
        commit=commit,
        layout=layout,
        testbed=np.array([names.index(v.testbed) for v in visits]),
        testbeds=tuple(names),
        time=started - started.min(),
        location=location,
        precision=precision,
        runs=sizes,
        run_sd=run_sd,
        run_df=df,
        nu=nu,
    )


def _short_boot_sd(offset: Floats, commit_runs: Ints, run_sd: float) -> float:
    """Return the standard deviation by which boots of one or two runs are judged as outliers.

    Such a boot differs from the other boots of its commit by its own boot offset, too. If run noise alone is
    the measure, boots that scatter get little weight and the scatter is underestimated: 17% of the
    comparisons of two equal commits then passed at 5%. offset: (L,) distance of such boots from the median of
    the commit's runs; commit_runs: (L,) the number of these runs.
    """
    if len(offset) < 3:
        return run_sd
    deviation = np.abs(offset) * np.sqrt(commit_runs / (commit_runs - 1.0))
    return max(run_sd, NORMAL_SD_PER_MEDIAN_DEVIATION * float(np.median(deviation)))


def _estimate_locations(
    y: Floats,
    visit: Ints,
    cell: Ints,
    ends: NDArray[np.bool_],
    sizes: Ints,
    scale: Scale,
    calibrated: VarianceComponents | None,
) -> tuple[Floats, Floats, float, float, float]:
    """Return robust locations (V,), their precisions (V,), the run standard deviation, its df, and nu.

    y, visit: (R,) runs in worse units and the visit of each; cell: (V,) index of each visit's binary; ends:
    (V,) True for visits of good and bad; sizes: (V,) runs of each visit.
    """
    count = len(sizes)
    floor = RESOLUTION_PER_THRESHOLD * scale.threshold
    cell_sizes = np.bincount(cell[visit])
    within = float((sizes - 1).sum())
    group, group_sizes = visit, sizes
    if within < 6:  # mostly single runs: use the scatter between the boots of a commit
        group, group_sizes = cell[visit], cell_sizes
    group_median = median(y, group, np.arange(len(group_sizes)))
    n = group_sizes[group].astype(float)
    several = n > 1
    run_sd, df, nu = floor, 0.0, T_DEGREES_OF_FREEDOM[1]
    if several.any():
        stretch = np.sqrt(n[several] / (n[several] - 1))
        weight = (n[several] - 1) / n[several]
        df = float(weight.sum())
        run_sd, nu = _fit_student_t((y - group_median[group])[several] * stretch, weight, floor)
    if calibrated is not None:
        known = calibrated.run_sd * (1.0 if scale.log else scale.base)
        total_df = df + calibrated.run_df
        run_sd = math.sqrt((df * run_sd**2 + calibrated.run_df * known**2) / max(total_df, 1e-9))
        df = total_df
    run_sd = max(run_sd, floor)
    # The centre for boots of few runs: the median of their commit if that has three runs; else their own
    # value, limited to the span of the ends and of commits with three runs. So a lone run may read like bad,
    # but not ten standard deviations beyond bad.
    by_commit = median(y, cell[visit], np.arange(len(cell_sizes)))[cell]
    by_visit = median(y, visit, np.arange(count))
    settled = cell_sizes[cell] >= 3
    span = by_commit[settled | ends] if ends.any() else by_visit
    centre = np.where(settled, by_commit, np.clip(by_visit, span.min(), span.max()))
    many = sizes >= 3
    lone = settled & ~many
    width = _short_boot_sd((by_visit - by_commit)[lone], cell_sizes[cell][lone], run_sd)
    judged = np.where(many, run_sd, width)[visit]
    centre = np.where(many, by_visit, centre)
    w = np.ones(len(y))
    for _ in range(4):
        z2 = ((y - centre[visit]) / judged) ** 2
        w = (nu + 1) / (nu + z2)
        location = np.bincount(visit, w * y, count) / np.bincount(visit, w, count)
        centre = np.where(many, location, centre)
    location = np.bincount(visit, w * y, count) / np.bincount(visit, w, count)
    # Fisher information of a t location is (nu+1)/(nu+3) for each sample of unit scale.
    efficiency = (nu + 1) / (nu + 3)
    sd = run_sd / math.sqrt(efficiency)
    precision = np.bincount(visit, w, count) / sd**2
    return location, precision, sd, df, nu
