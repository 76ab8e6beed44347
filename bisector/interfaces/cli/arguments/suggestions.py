"""Suggestions for a command or an option that does not exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bisector.errors import nearest

_MAX_SUGGESTIONS = 3
"""More would be a list to read, and `--help` has a better one."""

_VERDICTS = ("good", "bad", "skip", "old", "new")
"""`git bisect` has a command for each; here they are values of `mark`."""


def describe_unknown_command(word: str, root: Any, group: Any, path: str) -> str:  # noqa: ANN401 - Typer's groups
    """Return the message for a word that is no command. path: of the group, with the program's name.

    A command of some group, or an option, that is called so is named before any command with a near name.
    """
    problem = f"there is no command '{word}'" if group is root else f"'{path}' has no command '{word}'"
    if group is root:
        exact = [f"mark ID REV {word}"] if word in _VERDICTS else list(_called(word, root))[:_MAX_SUGGESTIONS]
        if exact:
            return f"{problem}; did you mean {' or '.join(repr(one) for one in exact)}?"
    return problem + nearest(word, group.commands)


def describe_unknown_option(option: str, possible: Sequence[str], root: Any, path: str) -> tuple[str, str]:  # noqa: ANN401
    """Return message and cure for an option that a command does not have. possible: near ones that it has."""
    problem = f"'{path}' has no option '{option}'"
    program, _, command = path.partition(" ")
    if command and any(option in parameter.opts for parameter in root.params):
        return problem, f"write it before the command: {program} {option} ... {command}"
    return problem + nearest(option, possible), f"'{path} --help' says what it understands"


def _called(word: str, root: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield 'workload run' and others of groups, then 'start --run', the first command with the option."""
    for name, command in root.commands.items():
        if word in getattr(command, "commands", ()):
            yield f"{name} {word}"
    for name, command in root.commands.items():
        if any(f"--{word}" in parameter.opts for parameter in command.params):
            yield f"{name} --{word}"
            return
