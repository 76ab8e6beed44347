"""Help: every command has it, and every example in it (and in the README) is a valid command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application
from tests.support.command_line import parse
from tests.support.expected import check

ROOT = Path(__file__).resolve().parents[2]


def _commands() -> list[tuple[str, ...]]:
    def walk(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        below = getattr(command, "commands", None)
        if not below:
            return [path]
        return [path] + [row for name, one in below.items() for row in walk(one, (*path, name))]

    return walk(typer.main.get_command(application()), ())


COMMANDS = _commands()


def _examples() -> list[tuple[str, str]]:
    found = []

    def add(where: str, text: str, start: str) -> None:
        # a trailing comment in parentheses or after '#', or a shell's redirection, is not part of the command
        for line in re.findall(rf"^{start}(perfbisect [^\n]*)$", text, re.M):
            command = re.split(r"\s{2,}[(#]| [>;|] |\s+#\s|\s{2,}", line)[0]
            if "..." not in command:
                found.append((where, command))

    for path in COMMANDS:
        command = typer.main.get_command(application())
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        add(" ".join(path) or "perfbisect", command.help or "", r"\s*")
    add("README.md", (ROOT / "README.md").read_text(encoding="utf-8"), "    ")
    for row in re.findall(r"`(perfbisect [^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8")):
        if "--install-completion" not in row:  # parsing it would do it
            found.append(("README.md", re.split(r" [>;|] ", row)[0]))
    return found


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_word_for_word(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run([*path, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    check(f"help/{'-'.join(path) or 'perfbisect'}.txt", out)


@pytest.mark.parametrize("path", [p for p in COMMANDS if p], ids=" ".join)
def test_every_command_shows_an_example_unless_it_is_a_group(path: tuple[str, ...]) -> None:
    command = typer.main.get_command(application())
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    assert command.help
    if not getattr(command, "commands", None):
        assert "  perfbisect " in command.help, f"{' '.join(path)} has no example"


@pytest.mark.parametrize(("where", "example"), _examples(), ids=lambda value: str(value)[:60])
def test_examples_are_valid_command_lines(where: str, example: str) -> None:
    parse(example)
