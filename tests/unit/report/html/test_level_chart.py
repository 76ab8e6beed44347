"""The drawing of levels: which side of the culprit each commit is on, and where a change would be one.

With `commit_axis`: what is marked.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from bisector.model.goal import Threshold
from bisector.report.html import commit_axis, level_chart
from bisector.report.html.measured_boots import levels, measured_boots
from bisector.report.report_model import Material
from tests.support.report_material import concluded, demo


def drawn(material: Material) -> str:
    return str(level_chart.render(material, levels(measured_boots(material), 0.05)))


def test_drawings_tell_the_two_sides_of_the_culprit_apart() -> None:
    material = demo()
    chart = drawn(material)
    shapes = re.findall(r'<g class="level ?(\w*)"><title>(\d)\d{11}.*?</title><path[^>]*/><(\w+)', chart)
    assert shapes == [
        ("old", "1", "circle"),
        ("old", "3", "circle"),
        ("new", "4", "rect"),
        ("new", "5", "rect"),
    ]
    assert "; boots: 2, runs: 4</title>" in chart and chart.count("; boots: 1, runs: 2</title>") == 3
    assert ">good 1111111111</text>" in chart and ">bad 5555555555</text>" in chart
    assert commit_axis.sides(material) == {0: "old", 1: "old", 2: "old", 3: "new", 4: "new"}
    unknown = dataclasses.replace(material, conclusion=None)
    assert commit_axis.sides(unknown) == {0: "old", 4: "new"}
    shapes = re.findall(
        r'<g class="level ?(\w*)"><title>(\d)\d{11}.*?</title><path[^>]*/><(\w+)',
        drawn(unknown),
    )
    assert shapes == [("old", "1", "circle"), ("", "3", "path"), ("", "4", "path"), ("new", "5", "rect")]


def test_marks_are_of_single_commits_that_are_large_enough() -> None:
    material = demo()
    assert {index: mark.word for index, mark in commit_axis.marks(material).items()} == {3: "culprit"}
    assert commit_axis.marks(concluded(material, commits=(2, 3))) == {}
    assert commit_axis.marks(concluded(material, small=True)) == {}
    so_far = dataclasses.replace(material, conclusion=None, so_far=material.conclusion)
    assert [*commit_axis.marks(so_far)] == [3]


@pytest.mark.parametrize(("better", "threshold"), [("lower", 0.158 * 1.1), ("higher", 0.158 * 0.9)])
def test_the_threshold_is_drawn_where_a_change_would_be_one(better: Any, threshold: float) -> None:
    material = demo()
    metric = dataclasses.replace(material.goal.metric, better=better, threshold=Threshold(0.1))
    goal = dataclasses.replace(material.goal, metric=metric)
    assert level_chart._threshold(dataclasses.replace(material, goal=goal), 0.158) == pytest.approx(threshold)
    metric = dataclasses.replace(metric, threshold=Threshold(0.02, relative=False))
    goal = dataclasses.replace(material.goal, metric=metric)
    step = 0.02 if better == "lower" else -0.02
    assert level_chart._threshold(dataclasses.replace(material, goal=goal), 0.158) == pytest.approx(
        0.158 + step
    )


def test_a_legend_says_what_the_marks_mean_that_are_there() -> None:
    material = demo()
    found = levels(measured_boots(material), 0.05)
    crosses = "Crosses could not be tested."
    assert level_chart.legend(material, found) == f"Circles: older side; squares: with the change. {crosses}"
    open_ = dataclasses.replace(material, conclusion=None)
    assert "diamonds: on which side is open" in level_chart.legend(open_, found)
    measured = [dataclasses.replace(found[0], commit=1), *found]
    assert crosses not in level_chart.legend(material, measured), "it was measured before"
