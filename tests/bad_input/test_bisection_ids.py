"""Bisections that are named wrongly, in every command that takes an id."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.harness import Row, check_row, each_row

COMMANDS = {
    "status": ["status", "ID"],
    "show": ["show", "ID"],
    "report": ["report", "ID"],
    "log": ["log", "ID"],
    "resume": ["resume", "ID"],
    "cancel": ["cancel", "ID"],
    "mark": ["mark", "ID", "v3", "bad"],
    "discard": ["discard", "ID", "--boot", "boot-001"],
    "compare": ["compare", "v1", "v5", "--bisection", "ID"],
}

WRONG = {
    "unknown": ("nope", "there is no bisection 'nope'"),
    "misspelt": ("here-opne", "did you mean 'here-open'?"),
    "ambiguous": ("here-", "'here-' is the beginning of several bisections"),
}

ROWS = [
    Row(f"{command}-{kind}", [word.replace("ID", wrong) for word in arguments], [says])
    for command, arguments in COMMANDS.items()
    for kind, (wrong, says) in WRONG.items()
]


@each_row(ROWS)
def test_an_id_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)
