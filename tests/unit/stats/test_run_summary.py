"""Runs of one boot, summed up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.model.goal import Metric, Threshold
from bisector.stats.run_summary import runs_needed, sum_up
from bisector.stats.variance_components import smallest_effect

METRIC = Metric("real", "s", "lower", Threshold(0.05))


def test_level_spread_and_range() -> None:
    found = sum_up(METRIC, [1.0, 2.0, 3.0])
    assert (found.runs, found.mean, found.low, found.high, found.sd) == (3, 2.0, 1.0, 3.0, 1.0)
    assert found.threshold == pytest.approx(0.1)
    assert found.far == ()


def test_one_run_has_no_spread_and_promises_nothing() -> None:
    found = sum_up(METRIC, [1.5])
    assert (found.sd, found.shown, found.needed) == (None, None, None)


def test_an_absolute_threshold_is_in_the_metrics_unit() -> None:
    metric = Metric("real", "s", "lower", Threshold(0.25, relative=False))
    assert sum_up(metric, [4.0, 6.0]).threshold == 0.25


def test_of_a_level_of_zero_no_share_can_be_shown() -> None:
    found = sum_up(METRIC, [-1.0, 1.0])
    assert (found.threshold, found.needed) == (0.0, None)
    assert found.shown is not None and found.shown > 0


def test_a_run_far_off_is_named() -> None:
    assert sum_up(METRIC, [1.0, 1.01, 0.99, 1.0, 1.02, 9.0]).far == (6,)


def test_runs_that_repeat_exactly_need_two_a_side() -> None:
    found = sum_up(METRIC, [2.0, 2.0, 2.0])
    assert (found.sd, found.shown, found.needed) == (0.0, 0.0, 2)


@given(st.floats(0.001, 10), st.floats(0.001, 10))
def test_so_many_runs_show_it_and_one_less_does_not(sd: float, difference: float) -> None:
    needed = runs_needed(sd, difference)
    assert smallest_effect(sd, 0.0, 1, needed, 0.05) <= difference * (1 + 1e-9)
    if needed > 2:
        assert smallest_effect(sd, 0.0, 1, needed - 1, 0.05) > difference * (1 - 1e-9)


def test_nineteen_searches_of_twenty_see_a_difference_of_that_size() -> None:
    needed = runs_needed(1.0, 0.5)
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, (4000, needed)), rng.normal(0.5, 1, (4000, needed))
    seen = abs(a.mean(1) - b.mean(1)) > 1.96 * np.sqrt(2 / needed)
    assert 0.94 < seen.mean() < 0.96
