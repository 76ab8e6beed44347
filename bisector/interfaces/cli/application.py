"""The Typer application: global options, and the commands of the modules beside this one.

Every command line imports all of these modules, so none of them imports anything slow at its top.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import bisector

HELP = """Find the commit that made Linux slower.

Examples:

  perfbisect doctor

  perfbisect plan --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test

  perfbisect start --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test

  perfbisect report
"""

_MODULES = (
    "start",
    "query",
    "plan",
    "annotate",
    "compare",
    "profile",
    "simulate",
    "calibrate",
    "workload",
    "kernel",
    "lab",
    "doctor",
)
"""Each holds `register(app)`; the order is that of `--help`."""


@dataclass
class GlobalOptions:
    """The global options of this command line."""

    config: Path | None = None
    debug: bool = False


_global_options = GlobalOptions()


def global_options() -> GlobalOptions:
    """Return the global options that came before the command."""
    return _global_options


def application() -> typer.Typer:
    """Make the application with all its commands."""
    _global_options.config, _global_options.debug = None, False
    app = typer.Typer(
        name="perfbisect",
        help=HELP,
        rich_markup_mode=None,  # plain help: the same on a terminal, in a pipe and in the documentation
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_set_global_options)
    for name in _MODULES:
        importlib.import_module(f"{__package__}.{name}").register(app)
    _keep_lists_in_help(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"perfbisect {bisector.__version__}")
        raise typer.Exit


def _set_global_options(
    config: Annotated[
        Path | None,
        typer.Option(help="Settings file. [default: perfbisect.toml, looked for upwards from here]"),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Log every command; show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    _global_options.config, _global_options.debug = config, debug
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
