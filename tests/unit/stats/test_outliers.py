"""Outliers by place and distance, whatever else is in the set."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.stats import bimodality, outliers
from tests.support.samples import normal

VALUES = st.floats(-1e6, 1e6, allow_nan=False)
BOOTS = st.lists(st.lists(VALUES, max_size=8), max_size=5)


def test_an_outlier_is_no_group() -> None:
    assert bimodality.find([(*normal(11, 5), 300.0)]) is None
    (far,) = outliers.find([(*normal(11, 5), 300.0)])
    assert (far.value, far.boot, far.run) == (300.0, 1, 12)


def test_places_are_counted_from_one_and_empty_boots_count() -> None:
    (far,) = outliers.find([[1.0, 1.1, 0.9, math.nan], [], [1.05, 0.95, 5.0, 1.0]])
    assert (far.value, far.boot, far.run) == (5.0, 3, 3)


def test_the_distance_is_in_robust_deviations() -> None:
    values = [8.0, 9.0, 10.0, 11.0, 12.0, 30.0]
    (far,) = outliers.find([values])
    # median 10.5, absolute deviations 2.5 1.5 .5 .5 1.5 19.5: their median is 1.5
    assert far.distance == pytest.approx(19.5 / (1.4826 * 1.5), rel=1e-5)


def test_repeated_values_have_a_thousandth_of_their_size_as_deviation() -> None:
    near, far = 1000.0 + 5.9, 1000.0 + 6.1
    assert outliers.find([[1000.0] * 9 + [near]]) == ()
    assert len(outliers.find([[1000.0] * 9 + [far]])) == 1


def test_four_values_hold_no_outlier() -> None:
    assert outliers.find([[1.0, 1.0, 1.0, 50.0]]) == ()
    assert len(outliers.find([[1.0, 1.0, 1.0, 1.0, 50.0]])) == 1


@given(BOOTS)
def test_taking_outliers_away_takes_nothing_else(boots: list[list[float]]) -> None:
    found = outliers.find(boots)
    rest = outliers.without(boots, found)
    assert all(boots[o.boot - 1][o.run - 1] == o.value for o in found)
    assert sum(map(len, rest)) == sum(map(len, boots)) - len(found)
    assert len(rest) == len(boots)


@given(st.lists(VALUES, min_size=1, max_size=30))
def test_the_robust_deviation_is_the_scaled_median_deviation(values: list[float]) -> None:
    array = np.array(values)
    expected = np.median(np.abs(array - np.median(array))) / 0.6744897501960817
    assert outliers.robust_sd(array) == pytest.approx(float(expected))
