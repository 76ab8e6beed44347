"""Where the metric moved the other way, the report says how to search that way."""

from __future__ import annotations

import dataclasses
import shlex

import pytest

from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.model.goal import Direction, Find, Metric, Threshold
from bisector.report import json_report, text
from bisector.report.html import bisection_page
from bisector.report.report_model import Material
from bisector.report.sections import other_direction
from bisector.schemas.request import Attempt, Request
from tests.support.report_material import demo

BETTER = (-0.106, -0.104, -0.102)
SHARE, ABSOLUTE = Threshold(0.05), Threshold(3.0, relative=False)


def material(
    total: tuple[float, float, float] | None = BETTER,
    *,
    ending: Ending = Ending.NOT_REPRODUCED,
    find: Find = "regression",
    better: Direction = "lower",
    threshold: Threshold = SHARE,
) -> Material:
    found = demo()
    conclusion = Conclusion(ending, "Bad is better than good.", total=Interval(*total) if total else None)
    goal = dataclasses.replace(found.goal, find=find, metric=Metric("real", "s", better, threshold))
    request = {**found.request, "find": find}
    return dataclasses.replace(found, conclusion=conclusion, goal=goal, request=request)


def test_an_improvement_has_the_command_that_finds_it_in_text_page_and_json() -> None:
    found = material()
    command = other_direction.command(found)
    words = shlex.split(command)
    assert words[:2] == ["perfbisect", "start"]
    assert words[words.index("--find") + 1] == "fix"
    assert f"To find the commit that made it better:\n  {command}\n" in text.render(found)
    assert command in bisection_page.render(found)
    assert json_report.render(found)["other_direction"] == command


def test_a_fix_that_made_it_worse_has_the_command_of_a_regression() -> None:
    found = material((0.1, 0.2, 0.3), find="fix")
    assert "--find" not in other_direction.command(found)
    assert other_direction.lines(found)[1].strip() == "To find the commit that made it worse:"


@pytest.mark.parametrize(
    "found", [material(), material((0.1, 0.2, 0.3), find="fix")], ids=["a regression", "a fix"]
)
def test_the_other_search_goes_from_the_same_older_end_to_the_same_newer_one(found: Material) -> None:
    asked = Request.model_validate(found.request)
    words = shlex.split(other_direction.command(found))
    said = {name: words[words.index(f"--{name}") + 1] for name in ("good", "bad")}
    turned = asked.model_copy(update={"find": "regression" if asked.find == "fix" else "fix"})
    assert turned.oldest_first(said["good"], said["bad"]) == asked.oldest_first(asked.good, asked.bad)


@pytest.mark.parametrize(
    "found",
    [
        material((0.102, 0.104, 0.106)),
        material((-0.2, -0.1, 0.01)),
        material((-0.045, -0.04, -0.035)),
        material(None),
        material(ending=Ending.INCONCLUSIVE),
        material(better="higher"),
        material(find="fix"),
        dataclasses.replace(material(), conclusion=None),
        dataclasses.replace(
            material(), attempt=Attempt(of="x", culprit="c" * 40, unpatched="c" * 40, tried="d" * 40)
        ),
    ],
    ids=["worse", "not sure", "small", "no total", "open", "higher is better", "a fix", "running", "a try"],
)
def test_nothing_else_has_one(found: Material) -> None:
    assert other_direction.command(found) == ""
    assert other_direction.lines(found) == []


@pytest.mark.parametrize(
    "found",
    [material((0.1, 0.2, 0.3), better="higher"), material(threshold=ABSOLUTE)],
    ids=["higher is better", "a threshold in the metric's unit"],
)
def test_what_is_better_and_how_large_depends_on_the_metric(found: Material) -> None:
    assert "--find fix" in other_direction.command(found)
