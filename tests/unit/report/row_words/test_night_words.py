"""What people read of a night."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.report.row_words.night_words import night_words

NIGHT: dict[str, Any] = {"verdict": None, "why": "", "note": "", "confirmation": "", "confirmed": None}
SUSPECT = {
    "status": "suspect",
    "effect": {"low": 0.1, "estimate": 0.12, "high": 0.14},
    "last_good": 7,
    "first_bad": 9,
}


@pytest.mark.parametrize(
    ("more", "unit", "text"),
    [
        ({}, "", ""),
        ({"why": "the budget is used", "note": "no new commit"}, "", "the budget is used; no new commit"),
        ({"verdict": {"status": "steady", "effect": None}, "note": "x"}, "", "steady; x"),
        (
            {"verdict": SUSPECT, "confirmation": "pipe-confirm-9"},
            "",
            "suspect: +12.00% (+10.00% .. +14.00%) between the nights 7 and 9, being confirmed by "
            "pipe-confirm-9",
        ),
        (
            {"verdict": SUSPECT, "confirmation": "pipe-confirm-9", "confirmed": "rejected"},
            "ms",
            "suspect: +0.12 ms (+0.1 .. +0.14 ms) between the nights 7 and 9, rejected by pipe-confirm-9",
        ),
    ],
)
def test_a_night_in_a_line(more: dict[str, Any], unit: str, text: str) -> None:
    assert night_words({**NIGHT, **more}, unit) == text
