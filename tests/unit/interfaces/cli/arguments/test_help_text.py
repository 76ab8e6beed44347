"""Help texts: options in groups, no types of Python, whole sentences in lists of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application
from bisector.interfaces.cli.arguments.help_text import GROUPS, help_record


def parameters() -> Iterator[tuple[Any, Any]]:
    """Yield (context, parameter) of all commands."""

    def walk(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
        for parameter in command.get_params(context):
            yield context, parameter
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, type(context)(below, info_name=name, parent=context))

    root: Any = typer.main.get_command(application())
    yield from walk(root, root.make_context("perfbisect", ["list"], resilient_parsing=True))


PARAMETERS = list(parameters())


def test_no_parameter_has_a_type_of_python_or_two_defaults() -> None:
    for context, parameter in PARAMETERS:
        name, text = help_record(parameter, context)
        where = f"{context.command_path} {name}"
        assert "<str>" not in name and "list[" not in name and "Path" not in name, where
        assert text.count("[default") <= 1 and text.count("required") <= 1, f"{where}: {text}"
        assert "  " not in text, f"{where}: {text}"


def test_groups_hold_options_that_exist_each_in_one_group() -> None:
    named = [option for options in GROUPS.values() for option in options.split()]
    assert len(named) == len(set(named))
    assert set(named) <= {option for _, parameter in PARAMETERS for option in parameter.opts}


def test_a_long_command_has_groups_and_few_options_outside(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "start"]) == 0
    out = capsys.readouterr().out
    titles = [line for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        *("Arguments:", "Commits:", "Workload and decision:", "Kernels:", "Machines:", "Limits:"),
        "Queue:",
        "Other options:",
    ]
    for command in ("start", "plan", "simulate", "workload run", "compare", "calibrate"):
        run(["help", *command.split()])
        others = capsys.readouterr().out.split("Other options:")[1]
        assert others.count("\n  -") <= 5, f"{command}: options without a group{others}"


def test_what_is_mandatory_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    run(["help", "start"])
    out = capsys.readouterr().out
    assert "A commit without the regression. [required]" in out


@pytest.mark.parametrize("group", ["workload", "kernel", "lab"])
def test_a_bare_group_shows_its_help_with_whole_sentences(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([group]) == 0
    bare = capsys.readouterr()
    assert run(["help", group]) == 0
    assert capsys.readouterr() == bare
    assert "..." not in bare.out.split("Commands:")[1]
    assert all(len(line) <= 80 for line in bare.out.splitlines())


def test_help_of_what_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help"]) == 0
    assert "Usage: perfbisect [OPTIONS] COMMAND" in capsys.readouterr().out
    assert run(["help", "strat"]) == 1
    assert "strat" in capsys.readouterr().err
