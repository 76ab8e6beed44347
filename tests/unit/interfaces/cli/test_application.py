"""The application: global options hold for one command line, help texts keep their lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import keep_lists
from bisector.interfaces.cli.options import global_options


def test_lists_and_indented_lines_keep_their_line_breaks() -> None:
    text = "Words that\nare joined.\n\n  perfbisect list\n  perfbisect show\n\n* one\n* two"
    assert keep_lists(text) == (
        "Words that\nare joined.\n\n\b\n  perfbisect list\n  perfbisect show\n\n\b\n* one\n* two"
    )


def test_global_options_are_forgotten_with_their_command_line(
    own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_folders / "other.toml").write_text("")
    assert run(["--config", "other.toml", "list"]) == 0
    assert global_options().config == Path("other.toml")
    assert run(["list"]) == 0
    assert global_options().config is None


def test_the_version_is_printed_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("perfbisect ")
