"""When bisections that share testbeds begin and end: cases that can be reckoned by hand."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from bisector.app.execution.forecast import ForecastBisection, forecast

NOW = 1000.0


def work(
    name: str, left: float | None, testbeds: str = "t", *, priority: int = 5, ready: float = NOW
) -> ForecastBisection:
    """Return a bisection whose owner is the first letter of its name."""
    return ForecastBisection(name, name[0], priority, frozenset(testbeds), left, ready)


def expected(*all_work: ForecastBisection, **free: float) -> dict[str, tuple[float | None, float | None]]:
    """Return times from now on. free: testbeds, seconds from now on."""
    found = forecast(all_work, {name: NOW + seconds for name, seconds in free.items()}, NOW)
    return {name: (_later(begin), _later(end)) for name, (begin, end) in found.items()}


def _later(when: float | None) -> float | None:
    return None if when is None else round(when - NOW, 6)


def test_one_alone_goes_on_as_fast_as_it_has_testbeds() -> None:
    assert expected(work("a", 60.0), t=0) == {"a": (0, 60)}
    assert expected(work("a", 60.0, "tu"), t=0, u=0) == {"a": (0, 30)}
    assert expected(work("a", 60.0, "tu"), t=0, u=20) == {"a": (0, 40)}


def test_equals_share_and_the_rest_goes_to_who_is_left() -> None:
    assert expected(work("a", 60.0), work("b", 100.0), t=0) == {"a": (0, 120), "b": (0, 160)}


def test_owners_share_evenly_whatever_number_of_bisections_each_has() -> None:
    found = expected(work("a1", 30.0), work("a2", 30.0), work("b", 60.0), t=0)
    assert found == {"a1": (0, 120), "a2": (0, 120), "b": (0, 120)}


def test_the_less_urgent_begin_when_the_more_urgent_end() -> None:
    assert expected(work("a", 60.0), work("b", 10.0, priority=2), t=0) == {"a": (10, 70), "b": (0, 10)}


def test_where_nobody_can_say_nothing_is_said() -> None:
    urgent = work("b", None, priority=2)
    assert expected(work("a", 60.0), urgent, t=0) == {"a": (None, None), "b": (0, None)}
    assert expected(work("a", 60.0), t=math.inf) == {"a": (None, None)}
    assert expected(work("a", 60.0, ready=math.inf), work("b", 10.0), t=0)["b"] == (0, 10)


def test_a_capped_one_waits_until_its_time() -> None:
    assert expected(work("a", 60.0, ready=NOW + 100), t=5) == {"a": (100, 160)}


@given(
    st.lists(st.tuples(st.floats(0.1, 1e6), st.sampled_from(["t", "u", "tu"]), st.integers(1, 9)), max_size=6)
)
def test_no_work_is_lost_or_made(rows: list[tuple[float, str, int]]) -> None:
    """All end, not before both testbeds have done everything, and not after one could have."""
    everything = [work(f"a{i}", left, names, priority=p) for i, (left, names, p) in enumerate(rows)]
    ends = [end for _, end in expected(*everything, t=0, u=0).values()]
    total = sum(left for left, _, _ in rows)
    assert None not in ends
    last = max((end for end in ends if end is not None), default=0.0)
    assert total / 2 - 1 <= last <= total + 1
