"""The command line: `perfbisect COMMAND`, a function of its arguments that returns an exit code.

Exit codes: 0 culprit (or culprits) proven, or the command did what it says; 1 wrong request; 2 not
reproduced; 3 infrastructure; 4 a set that cannot be told apart; 5 inconclusive, spread, or budget spent;
130 interrupted.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

import typer

from bisector.errors import PerfbisectError, nearest
from bisector.interfaces.cli import output
from bisector.interfaces.cli.application import application
from bisector.interfaces.cli.options import global_options
from bisector.interfaces.cli.terminal import guard_streams
from bisector.schemas.loading import describe_wrong_value

__all__ = ["main", "run"]

INTERRUPTED = 130
WRONG_REQUEST = 1
DEFECT = 3

_NO_CHOICE = re.compile(r"(?P<value>.*) is not one of (?P<known>'.*')\.", re.DOTALL)
"""Typer's message for a value that is not one of the choices; `value` is the repr of a str."""


def main() -> None:
    """Run the command of this process and end it with the command's code.

    SIGTERM and SIGHUP (a closed terminal) act as Ctrl-C: the processes that it has started are ended, too.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    guard_streams()
    leave(run(sys.argv[1:]))


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """End the process, even while a thread of the workflow engine waits for a database on a full disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    if any(not t.daemon and t is not threading.main_thread() for t in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Execute one command line and return its exit code; errors are printed on stderr, never raised."""
    try:
        result = application()(
            args=list(arguments) or ["--help"], prog_name="perfbisect", standalone_mode=False
        )
        if result == INTERRUPTED:  # Typer has caught Ctrl-C
            raise KeyboardInterrupt
    except PerfbisectError as error:
        if global_options().debug:
            raise
        output.print_error(error.message, error.details, error.cure)
        return error.exit_code
    except typer.TyperException as error:  # Click's usage errors, whose own code is 2
        message, cure = _usage_error(error)
        output.print_error(message, "", cure)
        return WRONG_REQUEST
    except (KeyboardInterrupt, typer.Abort):
        output.print_error("interrupted", "", "")
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if global_options().debug:
            raise
        output.print_error(
            f"perfbisect itself failed: {type(error).__name__}: {error}",
            "This is a defect of perfbisect, not of your request.",
            "the same command with 'perfbisect --debug ...' shows where; please report that",
        )
        return DEFECT
    return result if isinstance(result, int) else 0


def _usage_error(error: typer.TyperException) -> tuple[str, str]:
    """Return message and cure of a usage error; those of wrong choices and numbers in our own words."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "perfbisect"
    cure = f"'{path} --help' says what it understands"
    message = describe_wrong_value(error.__cause__)
    if not (message and isinstance(error, typer.BadParameter)):
        return error.format_message(), cure
    name = error.param.get_error_hint().strip("'") if error.param is not None else "a value"
    choice = _NO_CHOICE.fullmatch(message)
    if choice is None:
        return f"{name}: {message}", cure
    known = re.findall("'([^']*)'", choice["known"])
    value = ast.literal_eval(choice["value"])
    return f"{name}: unknown value '{value}'{nearest(value, known)}", f"write one of {', '.join(known)}"
