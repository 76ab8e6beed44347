"""The units that levels are compared in: what a change is for people, and which thresholds make sense."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.model.decisions import Interval
from bisector.model.goal import Goal, Metric, Threshold
from bisector.search.metric.scale import Scale, scale_of


@given(st.floats(-2, 2), st.sampled_from([1.0, -1.0]), st.booleans())
def test_relative_turns_worse_units_into_what_the_user_reads(change: float, sign: float, log: bool) -> None:
    scale = Scale(log, sign, 0.05, 50.0)
    i = scale.to_relative_change(change - 0.1, change, change + 0.1)
    assert isinstance(i, Interval)
    assert i.low <= i.estimate <= i.high
    before, after = (50.0, 50.0 * np.exp(sign * change)) if log else (50.0, 50.0 + sign * change)
    assert i.estimate == pytest.approx(after / before - 1)
    assert scale.to_worse_units(np.array([after])) - scale.to_worse_units(
        np.array([before])
    ) == pytest.approx(change)


@pytest.mark.parametrize(
    ("level", "asked", "used"),
    [
        (-100.0, 5.0, 5.0),
        (-100.0, 1e-9, 1e-6),
        (-100.0, 1e9, 1000.0),
        (0.0, 1e-9, 1e-9),
        (-1e100, 1e98, 1e98),
    ],
    ids=["as it is", "tiny", "huge", "a level of zero", "a huge level"],
)
def test_a_threshold_that_makes_no_sense_counts_as_the_nearest_one_that_does(
    level: float, asked: float, used: float
) -> None:
    goal = Goal(Metric("m", "s", "lower", Threshold(asked, relative=False)))
    scale = scale_of(goal, np.full(4, level), level, log=False)
    assert scale.threshold * scale.unit == pytest.approx(used)
    assert scale.of_threshold(goal.metric.threshold) * scale.unit == pytest.approx(asked)
    worse = scale.to_worse_units(np.array([level, level * 1.1]))
    assert np.abs(worse).max() < 1e30
    assert scale.to_relative_change(*[float(worse[1] - worse[0])] * 3).low == pytest.approx(
        0.1 * np.sign(level)
    )


def test_limits_around_an_estimate_are_two_sd_away() -> None:
    scale = Scale(log=False, sign=-1.0, threshold=1.0, base=50.0)
    assert scale.around(5.0, 1.0) == Interval(-7 / 50, -5 / 50, -3 / 50)
    log = Scale(log=True, sign=1.0, threshold=0.05, base=50.0).around(0.1, 0.01)
    assert (log.low, log.high) == pytest.approx((np.expm1(0.08), np.expm1(0.12)))
