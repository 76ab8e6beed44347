"""The rules of every command line: nothing twice, nothing empty, nothing ignored, no argument without end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bisector.errors import RequestError
from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application
from bisector.interfaces.cli.arguments.argument_rules import IGNORED, MAX_ARGUMENT_CHARACTERS, refuse_unusable
from tests.support.command_line import parse


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare a b --alpha 0.1 --alpha 0.2", "--alpha is given 2 times: '0.1', '0.2'"),
        ("compare a b --better lower --better lower", "--better is given 2 times: 'lower', 'lower'"),
        ("start --testbed a --testbed b --testbed a", "--testbed is given 2 times: 'a', 'a'"),
        ("--config a --config b list", "--config is given 2 times: 'a', 'b'"),
        ("plan --recipe ''", "--recipe is empty"),
        ("report ''", "identity is empty"),
        ("kernel gc --keep 5 --all", "--keep has no effect with --all"),
        ("workload run x --testbed y", "--testbed has no effect without --rev"),
    ],
)
def test_a_broken_rule_is_refused(
    line: str, message: str, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(line)) == 1
    error, cure = capsys.readouterr().err.splitlines()
    assert error == f"error: {message}"
    assert cure.startswith("cure: ")


@pytest.mark.parametrize(
    "line",
    [
        "start --testbed a --testbed b --json",
        "compare same same --metric a --metric b --better a=lower --better b=higher",
        "workload run x --testbed y --rev HEAD",
        "kernel gc --keep 5",
        "list --json --json",
    ],
)
def test_what_keeps_the_rules_is_taken(line: str) -> None:
    parse(f"perfbisect {line}")


def test_the_table_names_what_exists() -> None:
    """An option that was renamed would make its rule silent."""
    known = {path: {*options, *arguments} for path, options, arguments in every_command()}
    for command, option, _, other in IGNORED:
        assert {option, other} <= known[command], command


def every_command() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (path, options, arguments) of each command."""

    def walk(command: Any, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, f"{path} {name}".strip())
        names = [(p.param_type_name, p.opts[0], str(p.metavar).strip("[]")) for p in command.params]
        yield (
            path,
            [option for kind, option, _ in names if kind == "option"],
            [argument for kind, _, argument in names if kind == "argument"],
        )

    yield from walk(typer.main.get_command(application()), "")


def test_arguments_are_bounded_and_text() -> None:
    refuse_unusable(["x" * MAX_ARGUMENT_CHARACTERS, "Grüße", "--note"])
    with pytest.raises(RequestError, match="has 4,097 characters"):
        refuse_unusable(["x" * (MAX_ARGUMENT_CHARACTERS + 1)])
    with pytest.raises(RequestError, match="is not text in UTF-8"):
        refuse_unusable([b"caf\xe9".decode(errors="surrogateescape")])
