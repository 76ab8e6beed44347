"""What people read of the queue."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.report.row_words.queue_words import doing_now, expected, priority_text

WAITS: dict[str, Any] = {
    "status": "queued",
    "measures_on": [],
    "prepares_on": [],
    "builds": False,
    "unusable": {},
    "capped": "",
    "waits_for": {},
    "expected_begin": None,
}


def test_people_read_words() -> None:
    assert [priority_text(number) for number in (2, 3, 5)] == ["high", "3", "normal"]


def test_an_end_that_nobody_knows_is_a_dash() -> None:
    assert expected(None, 5.0) == "\N{EM DASH}"
    assert expected(3605.0, 5.0) == "in 60 min"
    assert expected(1.0, 5.0) == "in 1.0 s"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"status": "interrupted", "measures_on": ["box"]}, "its executor was killed: the next one goes on"),
        ({"measures_on": ["a", "b"]}, "measures on a, b"),
        ({"measures_on": ["a"], "prepares_on": ["b"]}, "measures on a; builds or boots for b"),
        ({"prepares_on": ["a"], "unusable": {"a": "maintenance: new memory"}}, "builds or boots for a"),
        (
            {
                "measures_on": ["a"],
                "unusable": {"b": "suspect: it moved (check)", "c": "reserved by suspect-hunters"},
            },
            "measures on a; b: suspect: it moved (check)",
        ),
        (
            {"prepares_on": ["a"], "unusable": {"b": "its worker 'w2' does not run", "c": "retired: old"}},
            "builds or boots for a; b: its worker 'w2' does not run",
        ),
        (
            {"builds": True, "waits_for": {"box": "x1"}},
            "a kernel is built; the testbed is left to others",
        ),
        ({}, "waits for a testbed or a kernel"),
        ({"expected_begin": 5.0}, "waits for a testbed or a kernel"),
        ({"unusable": {"box": "drained"}}, "box: drained"),
        ({"unusable": {"a": "drained"}, "capped": "the cap"}, "the cap; a: drained"),
        ({"waits_for": {"box": "x1"}, "expected_begin": 65.0}, "waits for box, which x1 has; begins in 60 s"),
        ({"unusable": {"a": "drained"}, "waits_for": {"b": "x1"}}, "waits for b, which x1 has; a: drained"),
    ],
)
def test_what_a_bisection_does_or_waits_for(row: dict[str, Any], text: str) -> None:
    assert doing_now({**WAITS, **row}, 5.0) == text
