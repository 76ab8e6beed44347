"""What each culprit explains: the parts and the rest add up to the total."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.search.attribution import add_up_changes, unexplained_rest
from bisector.search.metric.scale import Scale
from bisector.search.sequential_test import Evidence
from tests.support.searching import make_evidence


def evidence(estimate: float, sd: float = 0.01) -> Evidence:
    return make_evidence(10.0, -10.0, estimate - 2 * sd, estimate, estimate + 2 * sd, sd, 1.0)


@given(
    st.floats(-1, 1),
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([1.0, -1.0]),
)
def test_points_add_up_to_the_total(total: float, parts: list[float], log: bool, sign: float) -> None:
    scale = Scale(log, sign, 0.05, 10.0)
    culprits = [evidence(p) for p in parts]
    *added, rest = add_up_changes(scale, (*culprits, unexplained_rest(evidence(total), culprits, 0.05)))
    whole = scale.to_relative_change(total, total, total)
    assert sum(p.estimate for p in added) + rest.estimate == pytest.approx(whole.estimate, abs=1e-9)
    assert all(p.low <= p.estimate <= p.high for p in (*added, rest))


def test_a_second_loss_comes_on_top_of_the_first() -> None:
    culprits = [evidence(math.log(1.1))] * 2
    left = unexplained_rest(evidence(math.log(1.21)), culprits, 0.05)
    first, second, rest = add_up_changes(Scale(True, 1.0, 0.05, 1.0), [*culprits, left])
    assert (first.estimate, second.estimate, rest.estimate) == pytest.approx((0.1, 0.11, 0.0))


def test_the_rest_is_less_sure_than_any_part() -> None:
    rest = unexplained_rest(evidence(0.3), [evidence(0.1), evidence(0.15)], 0.05)
    assert rest.sd == pytest.approx(0.01 * math.sqrt(3))
    assert rest.estimate == pytest.approx(0.05)
    assert rest.low < rest.estimate - 2 * 0.01
