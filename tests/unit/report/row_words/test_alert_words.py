"""What people read of alerts."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.report.row_words.alert_words import (
    change_words,
    culprit_lines,
    end_names,
    range_words,
    result_words,
)

ROW: dict[str, Any] = {
    "direction": "regression",
    "effect": {"low": 0.02, "estimate": 0.035, "high": 0.05},
    "unit": "",
    "duplicate_of": "",
    "culprits": [],
    "subject": "sched: rework",
    "finding": "suspect",
    "bisection": "pipe-1",
    "last_good": "a" * 40,
    "first_bad": "b" * 40,
}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "+3.5% worse"),
        ({"direction": "improvement", "effect": {"estimate": -0.01}}, "-1.0% better"),
        ({"effect": {"low": 0.00019, "estimate": 0.0002, "high": 0.00021}}, "+0.020% worse"),
        ({"unit": "ms", "effect": {"estimate": 0.25}}, "+0.25 ms worse"),
    ],
)
def test_a_change_has_its_direction(more: dict[str, Any], text: str) -> None:
    assert change_words({**ROW, **more}) == text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "aaaaaaaaaaaa .. bbbbbbbbbbbb"),
        ({"finding": "bisecting"}, "pipe-1"),
        ({"culprits": ["c" * 40]}, "cccccccccccc sched: rework"),
        ({"culprits": ["c" * 40, "d" * 40]}, "cccccccccccc ... sched: rework"),
        ({"culprits": ["c" * 40], "duplicate_of": "3f2a"}, "duplicate of 3f2a"),
    ],
)
def test_what_is_known_of_the_cause(more: dict[str, Any], text: str) -> None:
    assert result_words({**ROW, **more}) == text


def test_each_commit_that_was_found_has_a_line_and_the_subject_is_beside_its_own() -> None:
    """An alert keeps four: a set of more looked like those four."""
    assert culprit_lines(ROW) == []
    assert culprit_lines({**ROW, "culprits": ["c", "d"]}) == ["c sched: rework", "d"]
    *known, last = culprit_lines({**ROW, "culprits": ["c", "d", "e", "f"], "subject": ""})
    assert known == ["c", "d", "e", "f"]
    assert last == "there may be more: the report of the bisection has all"


def test_the_later_commit_of_an_improvement_is_not_called_bad() -> None:
    assert end_names(ROW) == ("last good", "first bad")
    assert end_names({**ROW, "direction": "improvement"}) == ("last worse", "first better")


def test_a_range_has_its_size_where_that_is_known() -> None:
    """A server of an earlier version does not tell it."""
    assert range_words(ROW) == ""
    assert range_words({**ROW, "commits": 1}) == "1 commit after 'last good', up to 'first bad'"
