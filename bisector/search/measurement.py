"""The measurement model: units, run noise, and the robust level of each visit.

Each visit (one boot) is summarised by a robust location and its precision. Runs follow a Student t
distribution. An outlier is never deleted; it gets less weight (IRLS weights of the t likelihood: Lange,
Little and Taylor 1989). Under the instruction clock, repetition k is compared with repetition k. All levels
are in 'worse units': the log of the value where the metric is positive and the threshold relative, the value
itself otherwise; the sign makes larger worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median

from bisector.model.dag import Floats, Ints
from bisector.model.decisions import Purpose
from bisector.model.state import State, Visit
from bisector.search.metric.scale import Scale, has_logarithms, scale_of
from bisector.stats import testbed_noise
from bisector.stats.grouping import group_combinations
from bisector.stats.student_t import T_DEGREES_OF_FREEDOM, BootTails, boot_tails, fit_scale
from bisector.stats.testbed_noise import TestbedNoise
from bisector.stats.variance_components import VarianceComponents

RESOLUTION_PER_THRESHOLD = 0.02
"""Standard deviation, in thresholds, below which nothing is resolved. Ten such differences in a row stay
below a fifth of the threshold, and a clock without noise gets a variance to divide by."""
RESOLUTION_PER_SPAN = 1e-7
"""The same, of the span of all locations. A number has 16 digits, and a covariance holds squares: without it
no matrix could be inverted where an effect is a million thresholds. Up to 200,000 it does not matter."""
NORMAL_SD_PER_MEDIAN_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation (Hampel 1974)."""


@dataclass(frozen=True, slots=True)
class Readings:
    """All visits with samples, as arrays (V,) in the order of the state.

    commit, layout: as in the state; testbed: index into testbeds; time: seconds since the first visit;
    location: in worse units; precision: of the location about the boot's own level (run noise only); runs:
    number of samples; boot_ratio: how much more the boot scatters than boots do, because those of its testbed
    do, or, where boots have heavy tails, because it lies far from the others of its binary; boot_squares: its
    squared distance from these, infinite if it is alone. run_sd: standard deviation of one run, run_df its
    degrees of freedom, pooled over the testbeds; nu: degrees of freedom of the runs' t distribution. noise:
    of each testbed. tails: of boots, None where they have none. resolution: standard deviation below which
    nothing is resolved.
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
    boot_ratio: Floats
    boot_squares: Floats
    run_sd: float
    run_df: float
    nu: float
    noise: TestbedNoise
    tails: BootTails | None
    resolution: float

    def run_sd_on(self, testbed: int | None) -> float:
        """Return the standard deviation of one run on a testbed; of the pool for one that is new."""
        return self.run_sd if testbed is None else self.run_sd * float(self.noise.run[testbed])

    def boot_ratio_on(self, testbed: int | None) -> float:
        """Return how much more boots scatter on a testbed than on all together; 1 for one that is new."""
        return 1.0 if testbed is None else float(self.noise.boot[testbed])


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


def finite_runs(state: State) -> tuple[list[Visit], Ints, Ints, Floats]:
    """Return the visits (V,) with finite values, how many each has, and of all these (R,) runs the number of
    the repetition and the value."""
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(v.samples for v in state.visits)), float)
    repetition, value = flat[::2].astype(np.int64), flat[1::2]
    finite = np.isfinite(value)
    visit = np.repeat(np.arange(len(state.visits)), [len(v.samples) for v in state.visits])
    sizes = np.bincount(visit[finite], minlength=len(state.visits))
    visits = [v for v, size in zip(state.visits, sizes.tolist(), strict=True) if size]
    return visits, sizes[sizes > 0], repetition[finite], value[finite]


def reads_in_logarithms(state: State) -> bool:
    """Return whether the levels of a state are logarithms. One run that is not positive makes them linear."""
    return has_logarithms(state.goal, finite_runs(state)[-1])


def summarise_visits(
    state: State, calibrated_noise: VarianceComponents | None = None, *, log: bool | None = None
) -> Readings | None:
    """Summarise the visits of a state; None while there is no sample.

    calibrated_noise: from an A/A measurement; it counts with its degrees of freedom. log: whether levels are
    logarithms; None where these visits are all that is known, so that they decide it.
    """
    visits, sizes, repetition, raw = finite_runs(state)
    if not visits:
        return None
    visit = np.repeat(np.arange(len(visits)), sizes)
    commit = np.array([v.commit for v in visits])
    layout = np.array([v.layout for v in visits])
    at_good = raw[commit[visit] == state.graph.good]
    level = float(np.median(at_good if len(at_good) else raw))
    scale = scale_of(state.goal, raw, level, reads_in_logarithms(state) if log is None else log)
    y = scale.to_worse_units(raw)
    if state.goal.clock == "instructions":
        y = _subtract_repetition_profile(y, visit, repetition)
    names = sorted({v.testbed for v in visits})
    started = np.array([v.at[0] if v.at else v.started for v in visits])
    ends = np.isin(commit, (state.graph.good, state.graph.bad))
    place = {name: i for i, name in enumerate(names)}
    testbed = np.array([place[v.testbed] for v in visits])
    _, cell = group_combinations(commit, layout, testbed)
    location, precision, run_sd, df, nu, noise = _estimate_locations(
        y, visit, cell, testbed, ends, sizes, scale, calibrated_noise
    )
    noise = replace(noise, boot=testbed_noise.boot_ratios(location, precision, cell, testbed))
    ratio = noise.boot[testbed]
    tails, squares = None, np.full(len(visits), math.inf)
    if not state.goal.exact:  # where boots repeat, or differ by their seeds only
        tails, squares = boot_tails(location, precision, cell, ratio, _resolution(scale, location))
    return Readings(
        scale=scale,
        boot=tuple(v.boot for v in visits),
        purpose=tuple(v.purpose for v in visits),
        commit=commit,
        layout=layout,
        testbed=testbed,
        testbeds=tuple(names),
        time=started - started.min(),
        location=location,
        precision=precision,
        runs=sizes,
        boot_ratio=ratio if tails is None else ratio * tails.stretch(squares, ratio, precision),
        boot_squares=squares,
        run_sd=run_sd,
        run_df=df,
        nu=nu,
        noise=noise,
        tails=tails,
        resolution=_resolution(scale, location),
    )


def _resolution(scale: Scale, location: Floats) -> float:
    """Return the standard deviation, in worse units, below which nothing is resolved."""
    return max(RESOLUTION_PER_THRESHOLD * scale.threshold, RESOLUTION_PER_SPAN * float(np.ptp(location)))


def _short_boot_sd(offset: Floats, commit_runs: Ints, long_offset: Floats, run_sd: float, nu: float) -> float:
    """Return the standard deviation by which boots of one or two runs are judged as outliers.

    Such a boot differs from the other boots of its commit by its own boot offset, too. If run noise alone is
    the measure, boots that scatter get little weight and the scatter is underestimated: 17% of the
    comparisons of two equal commits then passed at 5%. Where the runs of longer boots show no heavy tails,
    a boot far from the others is no outlier but scatter of boots, such as a second mode, and counts: by the
    median deviation 6 of 120 searches blamed a wrong commit where boots have two modes. Where runs do have
    heavy tails, which a few runs may show by chance, boots of three runs and more still tell their scatter,
    because an outlying run hardly moves their median.

    offset: (L,) distance of boots of one or two runs from the median of the commit's runs; commit_runs: (L,)
    the number of these runs; long_offset: the same distance of the longer boots; nu: of the runs within
    boots.
    """
    if len(offset) < 3:
        return run_sd
    deviation = np.abs(offset) * np.sqrt(commit_runs / (commit_runs - 1.0))
    if nu > T_DEGREES_OF_FREEDOM[0]:
        return max(run_sd, math.sqrt(float((deviation**2).mean())))
    scatter = math.sqrt(float((long_offset**2).mean())) if len(long_offset) else 0.0
    return max(run_sd, NORMAL_SD_PER_MEDIAN_DEVIATION * float(np.median(deviation)), scatter)


def _estimate_locations(
    y: Floats,
    visit: Ints,
    cell: Ints,
    testbed: Ints,
    ends: NDArray[np.bool_],
    sizes: Ints,
    scale: Scale,
    calibrated: VarianceComponents | None,
) -> tuple[Floats, Floats, float, float, float, TestbedNoise]:
    """Return robust locations (V,), their precisions (V,), the run standard deviation, its df, nu, and noise.

    y, visit: (R,) runs in worse units and the visit of each; cell: (V,) index of each visit's binary on its
    testbed; ends: (V,) True for visits of good and bad; sizes: (V,) runs of each visit.
    """
    count = len(sizes)
    floor = _resolution(scale, y)
    cell_sizes = np.bincount(cell[visit])
    within = float((sizes - 1).sum())
    by_visit = median(y, visit, np.arange(count))
    by_cell = median(y, cell[visit], np.arange(len(cell_sizes)))
    group, group_sizes, group_median = visit, sizes, by_visit
    if within < 6:  # mostly single runs: use the scatter between the boots of a commit
        group, group_sizes, group_median = cell[visit], cell_sizes, by_cell
    n = group_sizes[group].astype(float)
    several = n > 1
    run_sd, df, nu = floor, 0.0, T_DEGREES_OF_FREEDOM[1]
    noise = TestbedNoise.alike(int(testbed.max()) + 1, df)
    if several.any():
        stretch = np.sqrt(n[several] / (n[several] - 1))
        weight = (n[several] - 1) / n[several]
        df = float(weight.sum())
        residuals = (y - group_median[group])[several] * stretch
        run_sd, nu = fit_scale(residuals, weight, floor)
        noise = TestbedNoise.alike(len(noise.run), df)
        if len(noise.run) > 1:
            where = testbed[visit][several]
            noise = testbed_noise.run_ratios(residuals, weight, where, len(noise.run), run_sd, nu, floor)
            run_sd, nu = fit_scale(residuals / noise.run[where], weight, floor)
    if calibrated is not None:
        known = calibrated.run_sd * (1.0 if scale.log else scale.base)
        total_df = df + calibrated.run_df
        run_sd = math.sqrt((df * run_sd**2 + calibrated.run_df * known**2) / max(total_df, 1e-9))
        df = total_df
        noise = replace(noise, run_df=noise.run_df + calibrated.run_df)
    run_sd = max(run_sd, floor)
    # The centre for boots of few runs: the median of their commit if that has three runs; else their own
    # value, limited to the span of the ends and of commits with three runs. So a lone run may read like bad,
    # but not ten standard deviations beyond bad.
    by_commit = by_cell[cell]
    settled = cell_sizes[cell] >= 3
    span = by_commit[settled | ends] if ends.any() else by_visit
    centre = np.where(settled, by_commit, np.clip(by_visit, span.min(), span.max()))
    many = sizes >= 3
    lone = settled & ~many
    ratio = noise.run[testbed]
    offset = (by_visit - by_commit) / ratio
    # A boot that is alone in its cell has no offset from the others.
    compared = many & (np.bincount(cell)[cell] > 1)
    width = _short_boot_sd(offset[lone], cell_sizes[cell][lone], offset[compared], run_sd, nu)
    judged = (np.where(many, run_sd, width) * ratio)[visit]
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
    precision = np.bincount(visit, w, count) / (sd * ratio) ** 2
    return location, precision, sd, df, nu, noise
