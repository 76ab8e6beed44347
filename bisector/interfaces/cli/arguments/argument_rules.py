"""Rules of every command line: nothing is given twice, is empty, or is ignored.

The rules look at what was written, before any value is read; `StrictCommand` and `StrictGroup` keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from typer.core import TyperCommand, TyperGroup

from bisector.errors import RequestError
from bisector.interfaces.cli.arguments.help_text import write_commands, write_parameters
from bisector.interfaces.cli.arguments.suggestions import describe_unknown_command

MAX_ARGUMENT_CHARACTERS = 4096
"""Linux's PATH_MAX: no path is longer, and nothing else on a command line is as long as one."""

_SHOWN = 40
"""Characters of an argument that a message repeats."""

IGNORED: tuple[tuple[str, str, Literal["with", "without"], str], ...] = (
    ("alert list", "--all", "with", "--state"),
    ("compare", "--format", "with", "--json"),
    ("doctor", "--dry-run", "without", "--fix"),
    ("doctor", "--quiet", "with", "--json"),
    ("init", "--boot", "without", "--testbed"),
    ("init", "--host", "without", "--testbed"),
    ("init", "--overwrite", "with", "--dry-run"),
    ("kernel explain", "--repo", "without", "REV"),
    ("kernel explain", "--trust-repo", "without", "REV"),
    ("kernel gc", "--keep", "with", "--all"),
    ("plan", "--higher-is-better", "without", "--run"),
    ("plan", "--param", "with", "--run"),
    ("profile", "--least", "without", "--tree"),
    ("profile", "--repo", "without", "--commit"),
    ("profile", "--top", "with", "--annotate"),
    ("profile", "--top", "with", "--json"),
    ("profile", "--tree", "with", "--html"),
    ("profile", "--trust-repo", "without", "--commit"),
    ("simulate", "--bad", "without", "--repo"),
    ("simulate", "--boot-noise", "with", "--samples"),
    ("simulate", "--commits", "with", "--repo"),
    ("simulate", "--effect", "with", "--culprits"),
    ("simulate", "--good", "without", "--repo"),
    ("simulate", "--history", "with", "--repo"),
    ("simulate", "--json", "with", "--schema"),
    ("simulate", "--noise", "with", "--samples"),
    ("simulate", "--run-noise", "with", "--samples"),
    ("simulate", "--testbed-spread", "without", "--testbeds"),
    ("simulate", "--trust-repo", "without", "--repo"),
    ("start", "--higher-is-better", "without", "--run"),
    ("start", "--param", "with", "--run"),
    ("workload run", "--apply", "without", "--rev"),
    ("workload run", "--recipe", "without", "--rev"),
    ("workload run", "--repo", "without", "--rev"),
    ("workload run", "--testbed", "without", "--rev"),
    ("workload run", "--trust-repo", "without", "--rev"),
)
"""(command, option, with or without, another): the option would change nothing then, and is refused."""


class StrictCommand(TyperCommand):
    """A command that refuses what breaks a rule of this module."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's context
        """Parse the arguments behind the command's name. Raises RequestError."""
        _check(self, ctx, args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's
        """Write the options into the help."""
        write_parameters(self, ctx, formatter)


class StrictGroup(TyperGroup):
    """A group of commands whose own options keep the rules of this module. Alone it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's context
        """Parse the options before the command's name. Raises RequestError."""
        _check(self, ctx, args)
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - Typer's
        """Return what the first word names. Raises RequestError for a word that is no command."""
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            raise RequestError(
                describe_unknown_command(word, ctx.find_root().command, self, ctx.command_path),
                cure=f"'{ctx.command_path} --help' says what it understands",
            )
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's
        """Write the options and the commands into the help."""
        write_parameters(self, ctx, formatter)
        write_commands(self, ctx, formatter)


def refuse_unusable(arguments: Sequence[str]) -> None:
    """Raise RequestError for an argument that no command can use: too long, or no text."""
    for argument in arguments:
        shown = ascii(argument[:_SHOWN])[1:-1] + ("..." if len(argument) > _SHOWN else "")
        if len(argument) > MAX_ARGUMENT_CHARACTERS:
            raise RequestError(
                f"the argument '{shown}' has {len(argument):,} characters",
                cure=f"at most {MAX_ARGUMENT_CHARACTERS:,} are taken, the longest path that Linux knows",
            )
        if not argument.isascii() and any("\ud800" <= c <= "\udfff" for c in argument):
            raise RequestError(
                f"the argument '{shown}' is not text in UTF-8",
                cure="give the file a name in UTF-8, or a link to it that has one",
            )


def _check(command: TyperCommand | TyperGroup, ctx: Any, args: Sequence[str]) -> None:  # noqa: ANN401
    given = _written(command, ctx, args)
    for name, values in given.items():
        if "" in values:
            raise RequestError(f"{name} is empty", cure="write a value, or leave it out")
    for parameter in command.params:
        name = _name(parameter)
        values = given.get(name, [])
        if parameter.param_type_name == "option" and len(values) > 1:
            twice = values if not parameter.multiple else [v for v in values if values.count(v) > 1]
            if twice:
                raise RequestError(
                    f"{name} is given {len(twice)} times: {', '.join(map(repr, twice))}", cure="give it once"
                )
    path = ctx.command_path.removeprefix(f"{ctx.find_root().command_path} ")
    for where, option, when, other in IGNORED:
        if where == path and option in given and (other in given) == (when == "with"):
            raise RequestError(
                f"{option} has no effect {when} {other}",
                cure=f"leave {option} out" + (f", or give {other}" if when == "without" else f", or {other}"),
            )


def _written(command: TyperCommand | TyperGroup, ctx: Any, args: Sequence[str]) -> dict[str, list[str]]:  # noqa: ANN401
    """Return what was written: option or argument -> its values in order, none for a flag."""
    parser = command.make_parser(ctx)
    for option in parser._long_opt.values():
        if option.action == "store":  # the last one would replace the others
            option.action = "append"
    values, _, order = parser.parse_args(list(args))
    given = {}
    for parameter in order:
        value = values[parameter.name]
        if value is not None:
            given[_name(parameter)] = (
                [value] if isinstance(value, str) else [] if value is True else list(value)
            )
    return given


def _name(parameter: Any) -> str:  # noqa: ANN401 - Typer's option or argument
    """Return '--option', or an argument's name as the help shows it, without brackets."""
    if parameter.param_type_name == "option":
        return str(parameter.opts[0])
    return str(parameter.metavar or parameter.name).strip("[]")
