"""Comparing sets of samples: effects, intervals, and warnings in words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.model.goal import Direction
from bisector.stats.comparison import compare, summarise
from bisector.stats.comparison_result import Verdict
from bisector.stats.samples import SampleSeries
from bisector.stats.two_sample import hodges_lehmann
from tests.support.samples import boots, series

POUND = [6.9, 6.95, 6.88, 6.91, 9.269, 6.93, 6.9]
POSITIVE = st.lists(st.floats(0.1, 1e3), min_size=1, max_size=7)


def test_shift_of_known_sets() -> None:
    assert hodges_lehmann(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0])) == 2.0


def test_outlier_moves_neither_effect_nor_verdict_and_is_named() -> None:
    base = [[6.9, 6.95, 6.88, 6.91], [6.92, 6.93, 6.9], [6.91, 6.9]]
    result = compare("real", series(base, "s"), series([POUND[:4], POUND[4:], POUND[:2]]), threshold=0.05)
    assert abs(result.effect.estimate) < 0.01
    assert result.verdict != "worse"
    assert any("outlier" in w for w in result.warnings)


def test_a_change_in_units_is_that_of_the_first_median() -> None:
    result = compare(
        "real", series([[99.0, 100.0, 101.0]] * 4, "s"), series([[148.5, 150.0, 151.5]] * 4, "s")
    )
    assert result.effect.estimate == pytest.approx(0.5)
    assert result.plain.estimate == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("better", "level", "verdict"),
    [("lower", 110, "worse"), ("lower", 90, "better"), ("higher", 110, "better"), ("higher", 90, "worse")],
)
def test_direction(better: Direction, level: float, verdict: Verdict) -> None:
    result = compare(
        "m", series(boots(100, 5, 5, 1), "", better), series(boots(level, 5, 5, 2)), threshold=0.05
    )
    assert result.verdict == verdict
    assert result.significant
    assert result.effect.low <= level / 100 - 1 <= result.effect.high


def test_same_and_unclear() -> None:
    assert (
        compare("m", series(boots(100, 8, 8, 3)), series(boots(100, 8, 8, 4)), threshold=0.05).verdict
        == "same"
    )
    wide = compare(
        "m", series(boots(100, 2, 2, 5, 0.2, 0.2)), series(boots(101, 2, 2, 6, 0.2, 0.2)), threshold=0.01
    )
    assert wide.verdict == "unclear"
    assert not wide.significant


def test_thin_data_warns_instead_of_raising() -> None:
    one = compare("m", series([[1.0]]), series([[2.0]]))
    assert (one.verdict, one.p, one.method) == ("untested", None, "none")
    assert "a: 1 run: need 4 for a test at 5%" in one.warnings
    three = compare("m", series([[1.0, 1.1, 0.9]]), series([[1.0, 1.2, 1.1]]))
    assert "b: 3 runs: need 4 for a test at 5%" in three.warnings
    assert any("one boot" in w for w in three.warnings)


def test_equal_values_and_negative_values() -> None:
    same = compare("m", series([[5.0] * 4] * 3), series([[5.0] * 4] * 3), threshold=0.01)
    assert (same.verdict, same.effect.estimate) == ("same", 0.0)
    negative = compare("m", series([[-1.0, -1.1], [-0.9]]), series([[-2.0, -2.1], [-1.9]]))
    assert negative.plain.estimate == pytest.approx(-1.0)


def test_no_finite_value() -> None:
    with pytest.raises(ValueError, match="no finite value"):
        summarise("a", series([[float("nan")]]))


def test_coverage_of_the_interval() -> None:
    inside = 0
    for seed in range(80):
        r = compare(
            "m", series(boots(100, 6, 4, 2 * seed)), series(boots(103, 6, 4, 2 * seed + 1)), seed=seed
        )
        inside += r.effect.low <= 0.03 <= r.effect.high
    assert inside >= 72  # 95% nominal, at least 94.8% by counting; 71 or fewer of 80 come once in a hundred


def test_false_alarms_are_as_rare_as_alpha() -> None:
    alarms = sum(
        compare(
            "m", series(boots(100, 5, 3, 2 * seed + 1000)), series(boots(100, 5, 3, 2 * seed + 1001))
        ).significant
        for seed in range(200)
    )
    assert (
        alarms <= 17
    )  # 200 at 3.2% (the exact test of 5 and 5 boots is below 5%): 17 come once in a thousand


def test_runs_of_one_boot_do_not_count_as_independent() -> None:
    # two boots a side that scatter far more than their runs: runs pooled would say 'significant'
    a = [[100.0 + 0.01 * i for i in range(10)], [104.0 + 0.01 * i for i in range(10)]]
    b = [[103.0 + 0.01 * i for i in range(10)], [107.0 + 0.01 * i for i in range(10)]]
    assert not compare("m", series(a), series(b)).significant


def test_exact_p_of_fully_apart_sides() -> None:
    result = compare("m", series([[1.0, 2.0, 3.0, 4.0]]), series([[5.0, 6.0, 7.0, 8.0]]))
    assert result.p == pytest.approx(2 / 70)
    assert result.method == "exact"


@given(POSITIVE, POSITIVE)
def test_the_estimate_lies_in_its_interval_and_swaps_with_the_sides(a: list[float], b: list[float]) -> None:
    there, back = compare("m", series([a]), series([b])), compare("m", series([b]), series([a]))
    assert there.effect.low <= there.effect.estimate <= there.effect.high
    assert there.mean.low <= there.mean.estimate <= there.mean.high
    assert (1 + there.effect.estimate) * (1 + back.effect.estimate) == pytest.approx(1)
    assert there.significant == back.significant


@given(POSITIVE, POSITIVE, st.floats(0.01, 100))
def test_the_unit_of_the_numbers_changes_nothing(a: list[float], b: list[float], factor: float) -> None:
    one = compare("m", series([a]), series([b]))
    other = compare("m", series([[factor * x for x in a]]), series([[factor * x for x in b]]))
    assert other.effect.estimate == pytest.approx(one.effect.estimate, abs=1e-9)
    assert other.method == one.method


def test_published_means_are_compared_by_their_errors() -> None:
    a = SampleSeries(((100.0,),), error=0.01, repeats=10)
    result = compare("m", a, SampleSeries(((110.0,),), error=0.02, repeats=10))
    # t = ln 1.1 / hypot(0.01, 0.02) = 4.26 with 1/9 (e1^4 + e2^4) -> 13.2 degrees of freedom
    assert result.method == "published"
    assert result.p == pytest.approx(0.00089, abs=0.00002)
    assert 1 + result.effect.high == pytest.approx(1.1 * math.exp(2.1575 * math.hypot(0.01, 0.02)), rel=1e-4)
    assert result.a.runs == 10
    assert result.a.sd == pytest.approx(100 * 0.01 * math.sqrt(10))
    unknown = compare("m", a, SampleSeries(((110.0,),), repeats=10))
    assert (unknown.method, unknown.p) == ("none", None)
    assert (unknown.effect.low, unknown.effect.high) == (-1.0, math.inf), "it may be any change"


def test_a_base_of_zero_has_no_relative_change() -> None:
    result = compare("m", series([[0.0] * 4]), series([[1.0, 2.0, 3.0, 4.0]]))
    assert result.effect.estimate == math.inf
    assert result.plain.estimate == 2.5


def test_medians_of_boots_are_the_groups_and_empty_boots_are_none() -> None:
    result = compare("m", series([[1.0, 2.0, 9.0], [], [3.0]]), series([[4.0], [5.0, 7.0]]))
    assert result.group_counts == (2, 2)
    assert result.plain.estimate == pytest.approx(2.5 * (2.0 - 1), abs=10)
    assert compare("m", series([[1.0, 2.0]]), series([[4.0], [5.0]])).group_counts == (2, 2)


def test_a_small_but_certain_change_is_not_worse_than_the_threshold() -> None:
    a, b = series([[100.0, 100.1, 99.9, 100.05]]), series([[101.0, 101.1, 100.9, 101.05]])
    small = compare("m", a, b, threshold=0.05)
    assert small.significant
    assert small.verdict == "same"
    assert compare("m", a, b).verdict == "worse"


def test_a_p_value_below_alpha_proves_nothing_while_the_interval_touches_zero() -> None:
    """Ties: `compare` would otherwise print a significant change beside an interval that begins at +0%."""
    found = compare("m", series([[1, 1, 2, 2, 3, 3]]), series([[3, 3, 3, 3, 4, 4]]))
    assert found.p is not None
    assert found.p < 0.05
    assert found.effect.low == 0.0
    assert not found.significant
    assert found.verdict == "unclear"


def test_same_needs_both_ends_of_the_interval_below_the_threshold() -> None:
    a, b = series([[100.0, 101.0, 99.0, 100.0]]), series([[100.0, 112.0, 99.5, 101.0]])
    found = compare("m", a, b, threshold=0.05)
    assert abs(found.effect.low) < 0.05 < found.effect.high
    assert found.verdict == "unclear"


def test_the_mean_of_negative_numbers_has_its_interval_the_right_way_round() -> None:
    found = compare("m", series([[-10.0, -11.0, -9.0]]), series([[-20.0, -21.0, -19.0]])).mean
    assert found.estimate == pytest.approx(-1.0)
    assert -1.5 < found.low < -1.0 < found.high < -0.7


def test_a_mean_base_of_zero_bounds_the_change_on_no_side() -> None:
    mean = compare("m", series([[-1.0, 1.0, -1.0, 1.0]]), series([[1.0, 2.0, 3.0, 4.0]])).mean
    assert (mean.low, mean.estimate, mean.high) == (-math.inf, math.inf, math.inf)
