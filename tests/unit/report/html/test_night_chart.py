"""The nights of a series as a drawing, and as numbers."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.report.html import night_chart
from tests.support.report_material import HOSTILE


def night(number: int, *levels: float, reference: float | None = None) -> dict[str, Any]:
    boots = [{"reference": False, "values": [level]} for level in levels]
    if reference is not None:
        boots.append({"reference": True, "values": [reference]})
    return {
        "number": number,
        "scheduled": 1.79e9 + 86400 * number,
        "commit": f"{number:040x}",
        "level": sum(levels) / len(levels),
        "reference_level": reference,
        "boots": boots,
    }


NIGHTS = [night(1, 10.0, 10.2, reference=5.0), night(2, 10.1, 10.3), night(3, 11.0, 11.2, reference=5.1)]
ALERTS = {f"{3:040x}": {"id": HOSTILE, "state": HOSTILE}}


def test_alerts_are_marked_and_lead_to_their_page() -> None:
    drawn = night_chart.render(NIGHTS, ALERTS)
    assert drawn is not None
    assert drawn.count('class="band"') == 1 and 'href="/alerts/%3C%2Fscript' in drawn
    assert drawn.count('class="level old"') == 2 and drawn.count('class="level new"') == 1
    assert "<script" not in drawn and "3 nights with a level, 1 alerts" in drawn
    assert night_chart.render([], {}) is None


def test_a_branch_that_stands_still_has_one_mark_for_its_alert() -> None:
    """Each night of the commit had one: 'alertalertalert' above the drawing."""
    nights = [*NIGHTS, {**NIGHTS[2], "scheduled": 1.8e9}]
    drawn = night_chart.render(nights, ALERTS)
    assert drawn is not None
    assert drawn.count('class="band"') == 1 and drawn.count('class="level new"') == 2
    assert night_chart.data(nights, ALERTS)["alerts"] == [[NIGHTS[2]["scheduled"], HOSTILE]]


@pytest.mark.parametrize(
    ("nights", "places"), [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (40, [0, 8, 16, 23, 31, 39])]
)
def test_dates_stand_at_the_ends_and_between_them(nights: int, places: list[int]) -> None:
    assert night_chart.dated(nights) == places
    drawn = night_chart.render([night(number, 10.0) for number in range(nights)], {})
    assert drawn is not None and drawn.count("2026-") == len(places) + nights  # each mark has its own


def test_intervals_pool_the_scatter_of_boots() -> None:
    found = night_chart.interval_of(NIGHTS)
    deviation = 0.02**0.5  # each night: two boots 0.2 apart
    for one, interval in zip(NIGHTS, found, strict=True):
        assert interval == pytest.approx(
            (one["level"] - 1.96 * deviation / 2**0.5, one["level"] + 1.96 * deviation / 2**0.5)
        )


def test_one_boot_a_night_has_no_interval() -> None:
    assert night_chart.interval_of([night(1, 10.0), night(2, 11.0)]) == [None, None]
    assert night_chart.render([night(1, 10.0)], {}) is not None


def test_numbers_are_those_of_the_drawing() -> None:
    data = night_chart.data(NIGHTS, ALERTS)
    assert data["level"] == [10.1, 10.2, 11.1]
    factor = 10.6 / 5.05  # medians of the two nights that have both
    assert data["reference"] == [pytest.approx(5.0 * factor), None, pytest.approx(5.1 * factor)]
    assert data["alerts"] == [[NIGHTS[2]["scheduled"], HOSTILE]]
