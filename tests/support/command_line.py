"""Parse a command line without carrying it out: unknown commands, options and missing arguments raise."""

from __future__ import annotations

import shlex
from typing import Any

import typer.main

from bisector.interfaces.cli.application import application


def parse(line: str) -> None:
    command: Any = typer.main.get_command(application())
    name, *rest = shlex.split(line)
    context = command.make_context(name, rest)
    while getattr(command, "commands", None) and (rest := _left(context)):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest))


def _left(context: Any) -> list[str]:
    return [*getattr(context, "_protected_args", ()), *context.args]
