"""A reason is a line that others read; no command takes one that looks like several."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.interfaces.cli import run


@pytest.mark.usefixtures("own_folders")
@pytest.mark.parametrize(
    "command",
    [
        ["testbed", "drain", "guest", "--reason"],
        ["testbed", "retire", "guest", "--reason"],
        ["pause", "--reason"],
        ["cancel", "--reason"],
        ["resume", "--reason"],
        ["priority", "x", "high", "--reason"],
        ["series", "pause", "x", "--reason"],
        ["mail", "stop", "1", "--reason"],
        ["mark", "x", "y", "bad", "--note"],
        ["discard", "x", "--boot", "b1", "--note"],
    ],
)
@pytest.mark.parametrize("text", ["x\nSTATE", "\x1b[31m", "x" * 1001, "  ", "\u3000"])
def test_what_is_no_line_is_refused(
    command: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, text]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {command[-1]}: must be one line of text, at most 1,000 characters")
    assert len(said.splitlines()) == 2


def test_a_line_is_taken(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["testbed", "drain", "guest", "--reason", "é" * 1000]) == 0
    assert run(["testbed", "list"]) == 0
    assert "é" * 1000 in capsys.readouterr().out
