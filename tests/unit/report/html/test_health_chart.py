"""The reference plot of a testbed."""

from __future__ import annotations

from bisector.model.machines.health import HealthPoint, Outcome
from bisector.report.html import health_chart
from tests.support.report_material import HOSTILE


def point(outcome: Outcome, values: tuple[float, ...] = (), commit: str = "new") -> HealthPoint:
    return HealthPoint("box", 1.79e9, {"commit": commit, "metric": HOSTILE}, outcome, HOSTILE, values)


def test_boots_of_another_kernel_are_left_out() -> None:
    points = [point("sound", (1.0,), "old"), point("sound", (2.0,)), point("moved", (3.0,))]
    assert health_chart.comparable(points) == points[1:]
    assert health_chart.comparable([]) == []


def test_each_outcome_has_its_mark() -> None:
    drawn = health_chart.render([point("sound", (1.0, 2.0)), point("noisy", (1.0, 9.0)), point("failed")])
    assert drawn is not None
    assert drawn.count('class="level old"') == drawn.count('class="level new"') == 1
    assert drawn.count('class="cross"') == 1 and "3 boots, 2 of them not sound" in drawn
    assert "<script" not in drawn and "alert(1)" in drawn


def test_without_a_value_there_is_no_drawing() -> None:
    assert health_chart.render([]) is None
    assert health_chart.render([point("failed")]) is None
