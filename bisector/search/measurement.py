"""The measurement model: what the values mean, how much runs and boots scatter, and what outliers are worth.

A visit (one boot) is summarised by a robust location and its precision. Runs are Student t: a value far from
its neighbours is never deleted, it weighs less (IRLS weights of the t likelihood, Lange, Little and Taylor
1989). Where testbeds count instructions, repetition k is compared with repetition k. Everything is in 'worse
units': a log ratio where the metric is positive and the threshold relative, signed so that up is worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.model.records import Interval, Metric, Purpose
from bisector.model.state import State, Visit
from bisector.stats.variance_components import VarianceComponents

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESOLUTION_PER_THRESHOLD = 0.02
"""Differences below a fiftieth of the threshold are never resolved: ten such commits in a row stay below a
fifth of it, and noise-free clocks get a variance to divide by."""
T_DEGREES_OF_FREEDOM = (3.0, 5.0, 10.0, 30.0)
"""Student t degrees of freedom considered; 30 is Gauss for our purpose."""
T_DEGREES_LOG_PRIOR = (-0.7, 0.0, 0.0, -0.2)


@dataclass(frozen=True, slots=True)
class Scale:
    """How values become worse units. threshold: in worse units; base: level that relative changes mean."""

    log: bool
    sign: float
    threshold: float
    base: float

    def to_worse_units(self, values: Floats) -> Floats:
        """Turn values into worse units, same shape."""
        result: Floats = self.sign * (np.log(values) if self.log else values)
        return result

    def to_relative_change(self, low: float, estimate: float, high: float) -> Interval:
        """Return a difference in worse units as the relative change of the number that the user reads."""

        def back(v: float) -> float:
            v *= self.sign
            return math.expm1(min(v, 50.0)) if self.log else v / self.base

        a, b = sorted((back(low), back(high)))
        return Interval(a, min(max(back(estimate), a), b), b)


@dataclass(frozen=True, slots=True)
class Readings:
    """All usable visits as arrays (V,) in the order of the state.

    commit, layout, testbed: indices; testbeds: names of the latter; time: seconds since the first; location:
    worse units; precision: of the location about the boot's own level (run noise only); runs: clean samples.
    run_sd: standard deviation of one run; run_df: how well that is known; nu: degrees of freedom of the runs'
    t; scale: the units.
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
        """Return the precision that one more run brings about its boot's level."""
        return 1.0 / self.run_sd**2


def group_combinations(*parts: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the combinations of numberings (V,) that occur, sorted, and which of them (V,) each entry has.

    One number a combination: far faster than finding equal columns.
    """
    sizes = tuple(int(part.max()) + 1 for part in parts)
    key, place = np.unique(np.ravel_multi_index(parts, sizes), return_inverse=True)
    return np.unravel_index(key, sizes), place


def scale_of(metric: Metric, values: Floats, level: float) -> Scale:
    """Choose the units for a metric. level: a typical value at the good end."""
    threshold = metric.threshold
    sign = 1.0 if metric.better == "lower" else -1.0
    positive = bool(len(values)) and bool(values.min() > 0)
    if threshold.relative and positive:
        return Scale(True, sign, math.log1p(threshold.value), 1.0)
    base = abs(level) or 1.0
    return Scale(False, sign, threshold.value * base if threshold.relative else threshold.value, base)


def _fit_student_t(residuals: Floats, weight: Floats, floor: float) -> tuple[float, float]:
    """Return (scale, degrees of freedom) of a t distribution fitted to residuals.

    weight: how many degrees of freedom each residual is worth; they sum to the total.
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


def _group_median(values: Floats, group: Ints, count: int) -> Floats:
    """Return the median of each group (count,); groups are numbered, none is empty."""
    order = np.lexsort((values, group))
    ordered = values[order]
    sizes = np.bincount(group, minlength=count)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    middle: Floats = 0.5 * (ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2])
    return middle


def _subtract_repetition_profile(y: Floats, visit: Ints, repetition: Ints) -> Floats:
    """Take away what the repetition explains: its median difference from the reference repetition.

    The reference is the repetition that most visits have, the earliest of them: warm-up runs and runs that
    were flagged leave gaps in the numbers.
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


def readings(state: State, library: VarianceComponents | None = None) -> Readings | None:
    """Summarise the state's visits; None while there is no sample at all.

    library: run noise known from an A/A measurement, used while few degrees of freedom are there.
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
    scale = scale_of(state.goal.metric, raw, float(np.median(at_good if len(at_good) else raw)))
    y = scale.to_worse_units(raw)
    if state.goal.clock == "instructions":
        y = _subtract_repetition_profile(y, visit, repetition)
    names = sorted({v.testbed for v in visits})
    started = np.array([v.at[0] if v.at else v.started for v in visits])
    ends = np.isin(commit, (state.graph.good, state.graph.bad))
    _, cell = group_combinations(commit, layout)
    location, precision, run_sd, df, nu = _estimate_locations(y, visit, cell, ends, sizes, scale, library)
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


def _short_boot_sd(off: Floats, mates: Ints, run_sd: float) -> float:
    """Return the deviation that makes a boot of one or two runs no outlier yet.

    It differs from its commit's other boots by its own offset as well. Judged by the run noise alone, boots
    that scatter weigh less the further off they are and seem to scatter less than they do: of comparisons of
    two equal commits 17% passed at 5%. off: (L,) of such boots, distance from the median of the commit's
    runs; mates: (L,) how many those are.
    """
    if len(off) < 3:
        return run_sd
    return max(run_sd, 1.4826 * float(np.median(np.abs(off) * np.sqrt(mates / (mates - 1.0)))))


def _estimate_locations(
    y: Floats,
    visit: Ints,
    cell: Ints,
    ends: NDArray[np.bool_],
    sizes: Ints,
    scale: Scale,
    library: VarianceComponents | None,
) -> tuple[Floats, Floats, float, float, float]:
    """Return robust locations (V,), their precisions (V,), run standard deviation, its df, and nu.

    cell: (V,) numbers visits by binary; ends: (V,) those of good and of bad.
    """
    count = len(sizes)
    floor = RESOLUTION_PER_THRESHOLD * scale.threshold
    cell_sizes = np.bincount(cell[visit])
    within = float((sizes - 1).sum())
    group, group_sizes = visit, sizes
    if within < 6:  # single runs a boot: the scatter between boots of one commit has to serve
        group, group_sizes = cell[visit], cell_sizes
    median = _group_median(y, group, len(group_sizes))
    n = group_sizes[group].astype(float)
    several = n > 1
    run_sd, df, nu = floor, 0.0, T_DEGREES_OF_FREEDOM[1]
    if several.any():
        stretch = np.sqrt(n[several] / (n[several] - 1))
        weight = (n[several] - 1) / n[several]
        df = float(weight.sum())
        run_sd, nu = _fit_student_t((y - median[group])[several] * stretch, weight, floor)
    if library is not None:
        known = library.run_sd * (1.0 if scale.log else scale.base)
        run_sd = math.sqrt((df * run_sd**2 + library.run_df * known**2) / max(df + library.run_df, 1e-9))
        df += library.run_df
    run_sd = max(run_sd, floor)
    # A lone run is judged against its commit, or against the span of the ends and of what was seen often: it
    # may be bad, but not ten deviations beyond bad.
    by_commit = _group_median(y, cell[visit], len(cell_sizes))[cell]
    by_visit = _group_median(y, visit, count)
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
    # Fisher information of a t location: (nu+1)/(nu+3) a sample of unit scale.
    efficiency = (nu + 1) / (nu + 3)
    sd = run_sd / math.sqrt(efficiency)
    precision = np.bincount(visit, w, count) / sd**2
    return location, precision, sd, df, nu
