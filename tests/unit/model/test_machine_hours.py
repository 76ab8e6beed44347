"""Until when a cap makes an owner's bisections wait."""

from __future__ import annotations

import pytest

from bisector.model.machine_hours import HOUR_SECONDS, WEEK_HOURS, wait_until

NOW = 1000.5 * HOUR_SECONDS


@pytest.mark.parametrize(
    ("by_hour", "counted", "until"),
    [
        ({}, 0.0, None),
        ({1000: 99.0}, 0.0, None),
        ({1000: 99.0}, 1.0, 1000 + WEEK_HOURS),
        ({990: 60.0, 1000: 50.0}, 0.0, 990 + WEEK_HOURS),
        ({980: 5.0, 990: 60.0, 1000: 50.0}, 0.0, 990 + WEEK_HOURS),
        ({1000 - WEEK_HOURS: 500.0, 1000: 50.0}, 0.0, None),
        ({1001 - WEEK_HOURS: 500.0}, 0.0, 1001),
    ],
    ids=[
        "nothing",
        "below",
        "what nobody wrote",
        "the oldest hour",
        "the second oldest",
        "a week ago",
        "soon",
    ],
)
def test_when_the_week_is_below_the_cap_again(
    by_hour: dict[int, float], counted: float, until: int | None
) -> None:
    expected = None if until is None else until * HOUR_SECONDS
    assert wait_until(by_hour, 100.0, NOW, counted) == expected
