"""Builders whose clock is wrong."""

from __future__ import annotations

import pytest

from bisector.adapters.build.builder_clock import require_clock, skew_seconds
from bisector.errors import BuilderUnwell


@pytest.mark.parametrize(("now", "skew"), [(1000, 0), (1050, 0), (1100, 0), (1101, 1), (999, -1)])
def test_a_clock_is_right_that_said_a_time_within_the_play(now: float, skew: float) -> None:
    assert skew_seconds(now, 1000, 1100) == skew


@pytest.mark.parametrize(("now", "side"), [("5000", "ahead of"), ("100", "behind")])
def test_a_clock_that_is_off_takes_the_builder_out(now: str, side: str) -> None:
    with pytest.raises(BuilderUnwell, match=f"the clock of the builder 'big' is .* s {side} ours") as error:
        require_clock("big", {"now": now}, 1000, 1100)
    assert "NTP" in error.value.cure


@pytest.mark.parametrize("facts", [{"now": "1000"}, {"now": "1219"}, {"now": "880"}, {}])
def test_a_long_play_and_a_small_skew_say_nothing(facts: dict[str, str]) -> None:
    require_clock("big", facts, 1000, 1100)
