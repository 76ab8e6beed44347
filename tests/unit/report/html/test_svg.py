"""Scales and axes."""

from __future__ import annotations

import pytest

from bisector.report.html import svg


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-5, 5), (99.98, 100.03), (0, 1e9), (-1e-9, 2e-9), (0.158, 0.19)]
)
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    ticks = svg.Axis(low, high, 0, 100).ticks()
    assert 2 <= len(ticks) <= 7
    room = (high - low) * 1e-6
    assert all(low - room <= tick <= high + room for tick in ticks)
    assert len({svg.tick_label(tick, ticks) for tick in ticks}) == len(ticks)


def test_all_values_are_drawn_within_the_room() -> None:
    scale = svg.fitting([3.0, 7.0], 200, 10)
    assert 10 < scale(7.0) < scale(3.0) < 200


@pytest.mark.parametrize("values", [[5.0, 5.0], [0.0], [], [float("nan"), float("inf"), 1.0]])
def test_equal_or_no_values_have_a_scale(values: list[float]) -> None:
    scale = svg.fitting(values, 0, 100)
    assert scale.low < scale.high
    assert scale.ticks()


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-9, 0.150643, 1.0, 12345.678, 1e9, 1e18, 1e300, 1e308])
@pytest.mark.parametrize("apart", [0.0, 1e-17, 2e-16, 1e-15, 1e-12, 1e-9, 1e-6, 1.0, 1e9])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_any_two_values_have_an_axis(size: float, apart: float, sign: float) -> None:
    scale = svg.fitting([sign * size, sign * size * (1 + apart)], 0, 100)
    ticks = scale.ticks()
    assert scale.low < scale.high and 2 <= len(ticks) <= 7
    assert all("nan" not in text and "inf" not in text for text in svg.left_axis(scale, "level"))
    assert all("nan" not in text for text in svg.bottom_axis(scale, 100, "level"))


def test_of_many_names_every_second_is_shown_and_all_that_matter() -> None:
    names = [(float(n), f"n{n}", "culprit" if n == 33 else "") for n in range(90)]
    shown = "".join(svg.slanted(names, 10))
    assert shown.count("<text") == 46
    assert ">n33<" in shown


def test_names_get_the_room_that_the_longest_needs() -> None:
    assert svg.shortened("0123456789", 10) == "0123456789"
    assert svg.shortened("0123456789a", 10) == "0123456..."
    assert svg.room_for(["", "0123456789"]) == 16 + 83
    assert svg.room_for([]) == 16
