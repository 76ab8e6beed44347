"""The Typer application: global options, and all commands with their names.

A command line that begins with a command imports the module of that command alone: to import all modules and
to read their options takes half of the time of a command that only looks.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import bisector
from bisector.interfaces.cli import options
from bisector.interfaces.cli.arguments.argument_rules import StrictCommand, StrictGroup
from bisector.interfaces.cli.groups import command_groups
from bisector.interfaces.cli.groups.command_groups import add_commands

HELP = """Find the commit that made Linux slower.

Examples:

  perfbisect doctor

  perfbisect plan --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test

  perfbisect start --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test

  perfbisect report
"""


def application(command: str = "") -> typer.Typer:
    """Make the application. command: the first word of the command line; if it is one, no other is there."""
    options.set_global_options()
    app = typer.Typer(
        name="perfbisect",
        help=HELP,
        rich_markup_mode=None,  # plain help: the same on a terminal, in a pipe and in the documentation
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(cls=StrictGroup)(_set_global_options)
    named = [add for names, add in _COMMANDS if command in names.split()]
    for add in named or [add for _, add in _COMMANDS]:
        add(app)
    _keep_lists_in_help(app)
    return app


def _add_start(app: typer.Typer) -> None:
    from bisector.interfaces.cli import start

    add_commands(app, start.start, start.resume)


def _add_attempt(app: typer.Typer) -> None:
    from bisector.interfaces.cli import try_change

    add_commands(app, try_change.try_)


def _add_query(app: typer.Typer) -> None:
    from bisector.interfaces.cli import query

    add_commands(app, query.list_, query.status, query.show, query.report, query.log)


def _add_queue(app: typer.Typer) -> None:
    from bisector.interfaces.cli import queue

    add_commands(app, queue.queue, queue.watch, queue.pause, queue.priority, queue.worker)


def _add_plan(app: typer.Typer) -> None:
    from bisector.interfaces.cli import plan

    add_commands(app, plan.plan)


def _add_annotate(app: typer.Typer) -> None:
    from bisector.interfaces.cli import annotate

    add_commands(app, annotate.mark, annotate.discard, annotate.cancel)


def _add_removal(app: typer.Typer) -> None:
    from bisector.interfaces.cli import removal

    add_commands(app, removal.rm, removal.prune)


def _add_transfer(app: typer.Typer) -> None:
    from bisector.interfaces.cli import export_import

    add_commands(app, export_import.export, export_import.import_)


def _add_compare(app: typer.Typer) -> None:
    from bisector.interfaces.cli.comparisons import compare

    add_commands(app, compare.compare)


def _add_profile(app: typer.Typer) -> None:
    from bisector.interfaces.cli.comparisons import profile

    add_commands(app, profile.profile)


def _add_simulate(app: typer.Typer) -> None:
    from bisector.interfaces.cli import simulate

    app.command("simulate", cls=StrictCommand, help=simulate.HELP)(simulate.command)


def _add_calibrate(app: typer.Typer) -> None:
    from bisector.interfaces.cli import calibrate

    app.command("calibrate", cls=StrictCommand)(calibrate.command)


def _add_web(app: typer.Typer) -> None:
    from bisector.interfaces.cli import web

    add_commands(app, web.web)


def _add_first(app: typer.Typer) -> None:
    from bisector.interfaces.cli import doctor, init

    add_commands(app, init.init, doctor.doctor)


_COMMANDS: tuple[tuple[str, Callable[[typer.Typer], None]], ...] = (
    ("start resume", _add_start),
    ("try", _add_attempt),
    ("list status show report log", _add_query),
    ("queue watch pause priority worker", _add_queue),
    ("plan", _add_plan),
    ("mark discard cancel", _add_annotate),
    ("rm prune", _add_removal),
    ("export import", _add_transfer),
    ("compare", _add_compare),
    ("profile", _add_profile),
    ("simulate", _add_simulate),
    ("calibrate", _add_calibrate),
    *command_groups.GROUPS,
    ("web", _add_web),
    ("init doctor", _add_first),
    ("help", lambda app: add_commands(app, help_)),
)
"""Names of commands, and the function that adds them, in the order of `--help`."""


def _complete_command(incomplete: str) -> list[str]:
    return [name for names, _ in _COMMANDS for name in names.split() if name.startswith(incomplete)]


def help_(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="One of the commands.", autocompletion=_complete_command),
    ] = None,
) -> None:
    """Show the help of perfbisect, or of a command.

    Examples:

      perfbisect help

      perfbisect help workload show
    """
    path = names or []
    application(*path[:1])(args=[*path, "--help"], prog_name="perfbisect", standalone_mode=False)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"perfbisect {bisector.__version__}")
        raise typer.Exit


def _set_global_options(
    config: Annotated[
        Path | None,
        typer.Option(help="Settings file. [default: perfbisect.toml, looked for upwards from here]"),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this 'perfbisect web' (token: PERFBISECT_TOKEN)."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Log every command; show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    options.set_global_options(config, debug=debug, server=server)
    logging.basicConfig(
        level=logging.DEBUG if debug else logging.WARNING,
        stream=sys.stderr,
        format="%(asctime)s %(name)s: %(message)s" if debug else "%(message)s",
    )


def _keep_lists_in_help(app: typer.Typer) -> None:
    """Keep the line breaks of lists and indented lines in all help texts. Click would join them otherwise."""
    for command in app.registered_commands:
        text = command.help or (command.callback.__doc__ if command.callback else "") or ""
        command.help = keep_lists(text)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _keep_lists_in_help(group.typer_instance)
    info = app.info
    if isinstance(info.help, str):
        info.help = keep_lists(info.help)


def keep_lists(text: str) -> str:
    """Return a help text with lists and indented paragraphs marked (\\b), so that Click keeps their lines."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith(("* ", "  ")) else part for part in paragraphs)
