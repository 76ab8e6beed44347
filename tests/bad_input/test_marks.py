"""Marks that no culprit could explain: a bad commit that is contained in a good one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.interfaces.cli import run
from tests.bad_input.harness import Row, check_row, each_row

ROWS = [
    Row("good-end-bad", ["mark", "here-open", "v1", "bad"], ["cannot be bad", "is the good end"]),
    Row("bad-end-good", ["mark", "here-open", "v5", "good"], ["cannot be good", "is the bad end"]),
    Row("good-end-skip", ["mark", "here-open", "v1", "skip"], ["cannot be skipped", "it is the good end"]),
    Row("bad-end-skip", ["mark", "here-open", "v5", "skip"], ["cannot be skipped", "--bad can be tested"]),
    Row("outside", ["mark", "here-open", "unrelated", "bad"], ["is not in the range"]),
    Row("ended", ["mark", "here-ended", "v3", "bad"], ["has ended"]),
    Row("unknown", ["mark", "here-open", "v9", "bad"], ["v9"]),
    Row("option-like", ["mark", "here-open", "--", "-x", "bad"], ["-x"]),
    Row("verdict", ["mark", "here-open", "v3", "ugly"], ["'ugly'", "good, bad, skip"]),
]


@each_row(ROWS)
def test_a_mark_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("first", "second"),
    [(("v3", "bad"), ("v4", "good")), (("v4", "good"), ("v2", "bad")), (("v2", "bad"), ("v5", "good"))],
)
def test_marks_along_a_line_of_descent_must_agree(
    first: tuple[str, str],
    second: tuple[str, str],
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(["mark", "here-open", *first]) == 0
    row = Row("second", ["mark", "here-open", *second], [f"cannot be {second[1]}"])
    check_row(row, place, capsys, monkeypatch)


@pytest.mark.parametrize("verdicts", [("v3 bad", "v3 good"), ("v2 good", "v4 bad"), ("v3 bad", "v4 skip")])
def test_marks_that_agree_and_a_change_of_mind_are_taken(verdicts: tuple[str, str], place: Path) -> None:
    for verdict in verdicts:
        assert run(["mark", "here-open", *verdict.split()]) == 0
