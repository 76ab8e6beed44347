"""What the values of a boot mean: the pattern of repetitions, units, outliers."""

import functools
import math
from collections.abc import Container, Iterable, Sequence

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, Metric, TestbedClock, Threshold
from bisector.model.records import Booted, Ran, Record
from bisector.model.state import fold
from bisector.search.measurement import Readings, _short_boot_sd, summarise_visits
from bisector.stats.student_t import T_DEGREES_LOG_PRIOR, T_DEGREES_OF_FREEDOM
from bisector.stats.variance_components import VarianceComponents
from tests.support.searching import Seen, context_of, linear, seen_on_unequal_testbeds

GRAPH = CommitGraph(("a" * 40, "b" * 40), ((), (0,)), (False, True), 0, 1)
PATTERN = (24.0, 9.0, 3.0, 1.0, 0.0, -0.5)
"""Cold repetitions take longer: in percent of the level, the same in every boot."""


def measured(
    boots: Iterable[tuple[int, float, Container[int]]],
    clock: TestbedClock = "instructions",
    warmup: int = 0,
) -> Readings:
    """boots: (commit, level, the repetitions that are clean)."""
    records: list[Record] = []
    for b, (commit, level, repetitions) in enumerate(boots):
        records.append(Booted(f"b{b}", commit, "t", True, 5.0, float(b)))
        for k in range(warmup + len(PATTERN)):
            flags = () if k - warmup in repetitions else ("stall",)
            y = level * (1 + PATTERN[min(k, len(PATTERN) - 1)] / 100)
            records.append(Ran(f"b{b}", k, {"m": y}, 1.0, b + k / 10, flags, warmup=k < warmup))
    goal = Goal(Metric("m", "s", "lower", Threshold(0.02)), clock=clock)
    found = summarise_visits(fold(GRAPH, goal, records))
    assert found is not None
    return found


@pytest.mark.parametrize("warmup", [0, 1, 2])
def test_repetitions_are_compared_with_the_same_repetition_whatever_the_warm_up(warmup: int) -> None:
    every = range(len(PATTERN))
    r = measured(
        [(0, 100.0, every), (0, 100.0, (0, 1)), (1, 103.0, (0, 1, 2)), (1, 103.0, every)], warmup=warmup
    )
    good, bad = r.location[:2], r.location[2:]
    assert good == pytest.approx(good[0], abs=1e-9)
    assert bad - good[0] == pytest.approx(np.log(1.03), abs=1e-9)
    assert r.run_sd < 1e-3


def test_a_flagged_first_repetition_leaves_the_others_comparable() -> None:
    every = range(len(PATTERN))
    r = measured([(0, 100.0, every), (0, 100.0, (1, 2)), (1, 103.0, every), (1, 103.0, (2, 3))])
    assert r.location[1] == pytest.approx(r.location[0], abs=1e-9)
    assert r.location[3] == pytest.approx(r.location[2], abs=1e-9)


def test_under_the_wall_clock_nothing_is_taken_away() -> None:
    r = measured([(0, 100.0, (0,)), (0, 100.0, (5,))], clock="wall")
    assert r.location[0] > r.location[1]


def test_a_boot_of_one_run_is_no_outlier_where_boots_scatter() -> None:
    offsets = [0.0, 0.1, -0.1, 0.2, -0.2, 0.4, -0.4, 4.0, -4.0, 5.0, -5.0, 6.0, -6.0, 9.0, 60.0]
    records: list[Record] = []
    for b, offset in enumerate(offsets):
        records.append(Booted(f"b{b}", 0, "t", True, 5.0, float(b)))
        for k in range(5 if b < 5 else 1):
            value = 100 + offset + 0.1 * (k - 2) + (1.0 if k == 4 else 0.0)
            records.append(Ran(f"b{b}", k, {"m": value}, 1.0, b + k / 10))
    r = summarise_visits(fold(GRAPH, Goal(Metric("m", "s", "lower", Threshold(0.02))), records))
    assert r is not None
    lone = r.precision[5:]
    assert lone[7:9].min() > 0.4 * lone[:2].max()  # as far off as boots are
    assert lone[-1] < 0.1 * lone[:2].max()  # ten times further than any other


def boots_of(
    *boots: tuple[int, float, int], steps: Sequence[float] = (0.0, 0.1, -0.1, 0.05, -0.05)
) -> Readings:
    """boots: (commit, level, runs); steps: how the runs of a boot differ."""
    records: list[Record] = []
    for b, (commit, level, runs) in enumerate(boots):
        records.append(Booted(f"b{b}", commit, "t", True, 5.0, float(b)))
        records += [Ran(f"b{b}", k, {"m": level + steps[k]}, 1.0, b + k / 10) for k in range(runs)]
    found = summarise_visits(fold(GRAPH, Goal(Metric("m", "s", "lower", Threshold(0.02))), records))
    assert found is not None
    return found


def test_boots_of_many_runs_do_not_say_how_far_lone_runs_may_lie() -> None:
    """Two lone runs are too few to tell; one that is far off counts little, or it would move its commit."""
    scattered = [(0, 100.0 + 3.0 * (-1) ** b, 5) for b in range(6)]
    r = boots_of(*scattered, (0, 100.0, 1), (0, 112.0, 1), (1, 105.0, 1))
    assert np.isfinite(r.precision).all()
    assert r.precision[7] < 0.05 * r.precision[:6].min() / 5


def test_lone_runs_say_how_far_lone_runs_may_lie_where_boots_of_many_runs_are_quiet() -> None:
    quiet = [(0, 100.0, 5)] * 6
    r = boots_of(*quiet, *((0, 100.0 + offset, 1) for offset in (3.0, -3.0, 2.5, -2.5)), (1, 105.0, 1))
    assert np.isfinite(r.precision).all()
    assert r.precision[6:10].min() > 0.3 * r.precision[:6].max() / 5


def test_lone_runs_scatter_by_the_standard_deviation_of_a_sample() -> None:
    """The median follows the runs, so they differ from it by too little."""
    offset, none = np.array([-1.0, 0.0, 1.0]), np.array([])
    sd = _short_boot_sd(offset, np.array([3, 3, 3]), none, 0.1, T_DEGREES_OF_FREEDOM[-1])
    assert sd == pytest.approx(np.std(offset, ddof=1))


def test_lone_runs_of_a_second_mode_count_where_the_runs_of_a_boot_have_no_heavy_tails() -> None:
    """Four boots in five read 100, one 104: that is scatter of boots, and no outlier to leave aside."""
    quiet = [(0, 100.0, 5)] * 6
    modes = [(0, 104.0 if b % 5 == 0 else 100.0, 1) for b in range(20)]
    r = boots_of(*quiet, *modes, (1, 105.0, 1))
    lone = r.precision[6:26]
    assert lone[::5].min() > 0.3 * lone.max()


def test_lone_runs_of_a_second_mode_count_where_longer_boots_show_it_though_runs_have_heavy_tails() -> None:
    """Two modes 4 apart, and runs of which one in five is far off, which a few runs may show by chance."""
    long = [(0, level, 5) for level in (100.0, 104.0, 100.0)]
    lone = [(1, level, 1) for level in (104.0, 104.0, 100.0)]
    r = boots_of(*long, *lone, steps=(0.0, 0.01, -0.01, 0.5, 0.0))
    assert r.nu == 3
    assert r.precision[5] > 0.3 * r.precision[4]
    quiet = boots_of(*((0, 100.0, 5) for _ in long), *lone, steps=(0.0, 0.01, -0.01, 0.5, 0.0))
    assert quiet.precision[5] < 0.01 * quiet.precision[4]  # an outlier of the runs


@pytest.mark.parametrize(("log", "unit"), [(True, 1.0), (False, 100.0)])
def test_the_run_noise_is_pooled_with_a_calibration_by_degrees_of_freedom(log: bool, unit: float) -> None:
    """Plain values are in the metric's unit, of which the calibration knows a share of the level."""
    levels = (100.0, 101.0, 99.0, 100.5, 99.5, 100.0)
    records: list[Record] = [Booted(f"b{b}", b % 2, "t", True, 5.0, float(b)) for b in range(4)]
    records += [Ran(f"b{b}", k, {"m": y}, 1.0, b + k / 10) for b in range(4) for k, y in enumerate(levels)]
    if not log:  # a value below zero: differences are plain
        records += [Booted("b9", 1, "t", True, 5.0, 9.0), Ran("b9", 0, {"m": -1.0}, 1.0, 9.0)]
    state = fold(GRAPH, Goal(Metric("m", "s", "lower", Threshold(0.02))), records)
    alone, pooled = summarise_visits(state), summarise_visits(state, VarianceComponents(0.03, 50.0, 0.0, 0.0))
    assert alone is not None
    assert pooled is not None
    assert alone.scale.log is log
    assert alone.scale.base == pytest.approx(unit)
    efficiency = alone.run_sd**2 / alone_variance(alone)
    expected = alone.run_df * alone_variance(alone) + 50.0 * (0.03 * unit) ** 2
    assert pooled.run_df == pytest.approx(alone.run_df + 50.0)
    assert pooled.run_sd == pytest.approx((efficiency * expected / pooled.run_df) ** 0.5)


def alone_variance(r: Readings) -> float:
    """Return the variance of a run before it is widened for the efficiency of a robust location."""
    return r.run_sd**2 * (r.nu + 1) / (r.nu + 3)


@pytest.mark.parametrize(("freedom", "fits"), [(2.5, (3.0,)), (5.0, (3.0, 5.0)), (math.inf, (10.0, 30.0))])
def test_tails_of_the_runs_are_those_of_their_distribution(freedom: float, fits: tuple[float, ...]) -> None:
    """Taken for too light, one outlier moves a level; for too heavy, a change needs more runs."""
    random = np.random.default_rng(7)
    drawn = random.standard_normal if math.isinf(freedom) else functools.partial(random.standard_t, freedom)
    records: list[Record] = []
    for b in range(60):
        records.append(Booted(f"b{b}", b % 2, "t", True, 5.0, float(b)))
        values = (100.0 + 0.5 * np.asarray(drawn(12))).tolist()
        records += [Ran(f"b{b}", k, {"m": y}, 1.0, b + k / 100) for k, y in enumerate(values)]
    r = summarise_visits(fold(GRAPH, Goal(Metric("m", "s", "lower", Threshold(0.02))), records))
    assert r is not None
    assert r.nu in fits


def test_extreme_tails_are_believed_only_where_the_data_show_them() -> None:
    heavy, *middle, gauss = T_DEGREES_LOG_PRIOR
    assert len(T_DEGREES_LOG_PRIOR) == len(T_DEGREES_OF_FREEDOM)
    assert len(set(middle)) == 1
    assert heavy < gauss < middle[0]


def test_each_testbed_has_its_own_noise_of_runs_and_boots() -> None:
    r = context_of(linear(4), seen_on_unequal_testbeds())[0].measured
    assert r.testbeds == ("loud", "quiet")
    assert r.run_sd_on(0) / r.run_sd_on(1) == pytest.approx(8.0, rel=0.4)
    assert r.run_sd_on(None) == r.run_sd
    assert r.boot_ratio_on(0) / r.boot_ratio_on(1) > 4
    precise = [float(np.median(r.precision[r.testbed == place])) for place in (0, 1)]
    assert precise[1] / precise[0] == pytest.approx((r.run_sd_on(0) / r.run_sd_on(1)) ** 2, rel=0.2)


def test_single_runs_are_compared_with_those_of_their_own_testbed() -> None:
    """Levels of testbeds differ twofold; runs repeat to a tenth of a percent."""
    values = np.random.default_rng(1).normal(0, 0.1, 24)
    visits = [
        Seen(i % 2, (100.0 * (1 + i // 2 % 2) + y,), testbed="ab"[i // 2 % 2]) for i, y in enumerate(values)
    ]
    assert context_of(linear(4), visits)[0].measured.run_sd < 0.01


def test_in_tails_a_boot_counts_by_its_testbed_and_by_how_far_it_lies() -> None:
    seen = seen_on_unequal_testbeds()
    odd = [Seen(1, (110.0, 110.1, 109.9, 110.0), testbed="quiet"), Seen(2, (320.0,) * 4, testbed="loud")]
    context, _ = context_of(linear(4), [*seen, *odd])
    r = context.measured
    ratio = r.noise.boot[r.testbed]
    assert r.tails is not None and ratio.max() > 2 * ratio.min()
    assert (r.boot_ratio[-2:] > 3 * ratio[-2:]).all()
    assert np.median(r.boot_ratio / ratio) == 1.0 and ((r.boot_ratio / ratio)[:-2] < 8).all()
    assert np.isfinite(r.boot_squares).all()
