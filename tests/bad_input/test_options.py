"""Every number, path and text of every option of every command, each with what no option can mean.

The tables are made from the commands themselves: an option that is added is tried without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bisector.interfaces.cli.application import application
from tests.bad_input.harness import Row, check_row, each_row

NEEDED = {
    "alert set": ["0123456789"],
    "alert show": ["0123456789"],
    "compare": ["old.txt", "new.txt"],
    "init": ["--yes"],
    "kernel build": ["v1", "--repo", "linux"],
    "kernel check": ["v1..v5", "--repo", "linux"],
    "mark": ["here-open", "v3", "bad"],
    "plan": ["--good", "v1", "--bad", "v5", "--workload", "pipe-test"],
    "priority": ["here-open", "high"],
    "series add": ["one", "--branch", "main", "--cron", "0 0 * * *", "--budget", "1"],
    "series backfill": ["one"],
    "series pause": ["one"],
    "series remove": ["one"],
    "series resume": ["one"],
    "series run": ["one"],
    "series show": ["one"],
    "profile": ["old.folded", "old.folded"],
    "start": ["--good", "v1", "--bad", "v5", "--workload", "pipe-test"],
    "workload check": ["./mine"],
    "workload new": ["fresh"],
    "workload run": ["./mine"],
    "workload show": ["./mine"],
}
"""What a command cannot do without."""

BESIDE = {
    ("init", "--boot"): ["--testbed", "ssh", "--host", "box1"],
    ("init", "--host"): ["--testbed", "ssh"],
    ("simulate", "--testbed-spread"): ["--testbeds", "2"],
}
"""What an option of a command cannot do without."""

NOT_A_NUMBER = {
    "nan": "nan", "inf": "inf", "minus-inf": "-inf", "minus": "-1e9", "huge": "1e309", "digits": "9" * 4000,
    "text": "many", "hex": "0x10",
}  # fmt: skip
NO_VALUE = {"empty": ("", "is empty"), "long": ("x" * 10_000, "10,000"), "not-utf8": ("\udcff", "UTF-8")}


def every_option() -> Iterator[tuple[str, str, Any]]:
    """Yield (command, option, its parameter) of all options that take a value."""

    def walk(command: Any, path: str) -> Iterator[tuple[str, str, Any]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, f"{path} {name}".strip())
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.is_flag:
                yield path, parameter.opts[0], parameter

    yield from walk(typer.main.get_command(application()), "")


def row(command: str, option: str, kind: str, value: str, says: list[str]) -> Row:
    """Return the row of an option with a value, behind what its command needs."""
    needed = [*NEEDED.get(command, []), *BESIDE.get((command, option), [])]
    if option in needed:  # it is said once
        at = needed.index(option)
        del needed[at : at + 2]
    if option in needed:
        del needed[needed.index(option) :][:2]
    return Row(
        f"{command}{option}-{kind}".replace(" ", "-"), [*command.split(), *needed, option, value], says
    )


OPTIONS = list(every_option())
NUMBERS = [
    row(command, option, kind, value, [f"{option}:", "is not a"])
    for command, option, parameter in OPTIONS
    if parameter.metavar in ("<int>", "<float>")
    for kind, value in NOT_A_NUMBER.items()
]
TEXTS = [
    row(command, option, kind, value, [says])
    for command, option, _ in OPTIONS
    for kind, (value, says) in NO_VALUE.items()
    if command
]
TWICE = [
    Row(
        f"{command}{option}-twice".replace(" ", "-"),
        [*command.split(), option, "1", option, "1"],
        [f"{option} is given"],
    )
    for command, option, _ in OPTIONS
    if command
]


def test_every_number_has_a_range() -> None:
    assert len(NUMBERS) > 200
    for command, option, parameter in OPTIONS:
        if parameter.metavar in ("<int>", "<float>"):
            assert "x<" in parameter.help, f"{command} {option}: the help shows no range"
        assert parameter.type_descriptor.annotation not in (int, float) or parameter.metavar, option


@each_row([*NUMBERS, *TEXTS, *TWICE])
def test_a_value_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)
