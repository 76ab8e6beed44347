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

    _add(app, start.start, start.resume)


def _add_attempt(app: typer.Typer) -> None:
    from bisector.interfaces.cli import try_change

    _add(app, try_change.try_)


def _add_query(app: typer.Typer) -> None:
    from bisector.interfaces.cli import query

    _add(app, query.list_, query.status, query.show, query.report, query.log)


def _add_queue(app: typer.Typer) -> None:
    from bisector.interfaces.cli import queue

    _add(app, queue.queue, queue.watch, queue.pause, queue.priority, queue.worker)


def _add_plan(app: typer.Typer) -> None:
    from bisector.interfaces.cli import plan

    _add(app, plan.plan)


def _add_annotate(app: typer.Typer) -> None:
    from bisector.interfaces.cli import annotate

    _add(app, annotate.mark, annotate.discard, annotate.cancel)


def _add_removal(app: typer.Typer) -> None:
    from bisector.interfaces.cli import removal

    _add(app, removal.rm, removal.prune)


def _add_transfer(app: typer.Typer) -> None:
    from bisector.interfaces.cli import export_import

    _add(app, export_import.export, export_import.import_)


def _add_compare(app: typer.Typer) -> None:
    from bisector.interfaces.cli.comparisons import compare

    _add(app, compare.compare)


def _add_profile(app: typer.Typer) -> None:
    from bisector.interfaces.cli.comparisons import profile

    _add(app, profile.profile)


def _add_simulate(app: typer.Typer) -> None:
    from bisector.interfaces.cli import simulate

    app.command("simulate", cls=StrictCommand, help=simulate.HELP)(simulate.command)


def _add_calibrate(app: typer.Typer) -> None:
    from bisector.interfaces.cli import calibrate

    app.command("calibrate", cls=StrictCommand)(calibrate.command)


def _add_workload(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import workload, workload_run

    group = typer.Typer(cls=StrictGroup, help="What can be measured.", rich_markup_mode=None)
    _add(group, workload.list_, workload.show, workload_run.run, workload.new, workload.check)
    app.add_typer(group, name="workload")


def _add_kernel(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import kernel

    group = typer.Typer(
        cls=StrictGroup, help="Kernels: build one, explain how, manage the cache.", rich_markup_mode=None
    )
    _add(group, kernel.build, kernel.explain, kernel.check, kernel.list_, kernel.gc)
    app.add_typer(group, name="kernel")


def _add_lab(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import lab

    group = typer.Typer(cls=StrictGroup, help="The machines that build and measure.", rich_markup_mode=None)
    _add(group, lab.list_, lab.check)
    app.add_typer(group, name="lab")


def _add_db(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import db

    group = typer.Typer(cls=StrictGroup, help="The database of bisections.", rich_markup_mode=None)
    _add(group, db.upgrade, db.check, db.move, db.prune)
    app.add_typer(group, name="db")


def _add_testbed(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import testbed

    group = typer.Typer(
        cls=StrictGroup, help="What each testbed may be used for, and by whom.", rich_markup_mode=None
    )
    _add(group, testbed.list_, testbed.reserve, testbed.release, testbed.drain, testbed.retire)
    _add(group, testbed.health)
    app.add_typer(group, name="testbed")


def _add_alert(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import alert

    group = typer.Typer(cls=StrictGroup, help="Nightly series whose level moved.", rich_markup_mode=None)
    _add(group, alert.list_, alert.show, alert.set_)
    app.add_typer(group, name="alert")


def _add_token(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import token

    group = typer.Typer(cls=StrictGroup, help="Who may use 'perfbisect web'.", rich_markup_mode=None)
    _add(group, token.add, token.list_, token.revoke)
    app.add_typer(group, name="token")


def _add_web(app: typer.Typer) -> None:
    from bisector.interfaces.cli import web

    _add(app, web.web)


def _add_settings(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import show_settings

    group = typer.Typer(cls=StrictGroup, help="What is set, and where.", rich_markup_mode=None)
    _add(group, show_settings.show, show_settings.check)
    app.add_typer(group, name="settings")


def _add_first(app: typer.Typer) -> None:
    from bisector.interfaces.cli import doctor, init

    _add(app, init.init, doctor.doctor)


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
    ("workload", _add_workload),
    ("kernel", _add_kernel),
    ("lab", _add_lab),
    ("testbed", _add_testbed),
    ("alert", _add_alert),
    ("db", _add_db),
    ("web", _add_web),
    ("token", _add_token),
    ("settings", _add_settings),
    ("init doctor", _add_first),
    ("help", lambda app: _add(app, help_)),
)
"""Names of commands, and the function that adds them, in the order of `--help`."""


def _add(app: typer.Typer, *commands: Callable[..., None]) -> None:
    for command in commands:
        app.command(command.__name__.rstrip("_"), cls=StrictCommand)(command)


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
