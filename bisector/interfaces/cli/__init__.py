"""The command line: `perfbisect COMMAND`, a function of its arguments that returns an `errors.ExitCode`."""

from __future__ import annotations

import ast
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import typer

from bisector.errors import ExitCode, PerfbisectError, RequestError, nearest
from bisector.interfaces.cli import output
from bisector.interfaces.cli.application import application
from bisector.interfaces.cli.arguments.argument_rules import refuse_unusable
from bisector.interfaces.cli.arguments.suggestions import describe_unknown_option
from bisector.interfaces.cli.options import global_options
from bisector.interfaces.cli.terminal import ReaderGone, guard_streams

__all__ = ["main", "run"]

_NO_CHOICE = re.compile(r"(?P<value>.*) is not one of (?P<known>'.*')\.", re.DOTALL)
"""Typer's message for a value that is not one of the choices; `value` is the repr of a str."""


def main() -> None:
    """Run the command of this process and end it with the command's code.

    SIGTERM and SIGHUP (a closed terminal) act as Ctrl-C: the processes that it has started are ended, too.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if sys.stderr is None:  # closed by the caller
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    guard_streams()
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # again, while the first one was reported
        code = ExitCode.INTERRUPTED
    leave(code)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """End the process, even while a thread of the workflow engine waits for a database on a full disk."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, PerfbisectError, ReaderGone):  # `run` has reported it already, if anybody can read it
        _discard_output()
    if any(not t.daemon and t is not threading.main_thread() for t in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Execute one command line and return its exit code; errors are printed on stderr, never raised."""
    try:
        if sys.stdout is None:
            raise RequestError("standard output is closed", cure="write to a file, or to /dev/null")
        refuse_unusable(arguments)
        result = application(arguments[0] if arguments else "")(
            args=list(arguments) or ["--help"], prog_name="perfbisect", standalone_mode=False
        )
        if result == ExitCode.INTERRUPTED:  # Typer has caught Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
    except PerfbisectError as error:
        _show_traceback()
        output.print_error(error.message, error.details, error.cure)
        return error.exit_code
    except typer.TyperException as error:  # Click's usage errors, whose own code is 2
        message, cure = _usage_error(error)
        output.print_error(message, "", cure)
        return ExitCode.WRONG_REQUEST
    except typer.Abort:
        return _report_interruption(at_question=True)
    except KeyboardInterrupt:
        return _report_interruption()
    except ReaderGone:
        _discard_output()
        return ExitCode.DONE
    except (OSError, MemoryError) as error:  # about this machine, wherever it was raised
        _show_traceback()
        return _report_machine(error, arguments)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps it where it defines a class
            return _report_interruption()
        _show_traceback()
        output.print_error(
            f"perfbisect itself failed: {type(error).__name__}: {error}",
            "This is a defect of perfbisect, not of your request.",
            "the same command with 'perfbisect --debug ...' shows where; please report that",
        )
        return ExitCode.INFRASTRUCTURE
    return result if isinstance(result, int) else ExitCode.DONE


def _show_traceback() -> None:
    """Print where an error was raised, for who asked for it; what follows is as without --debug."""
    if global_options().debug:
        traceback.print_exc()


def _report_interruption(*, at_question: bool = False) -> ExitCode:
    """Say that Ctrl-C ended the command. at_question: which stands on the line of the terminal still."""
    if at_question:
        output.end_question()
    output.print_error("interrupted", "", "")
    return ExitCode.INTERRUPTED


def _report_machine(error: OSError | MemoryError, arguments: Sequence[str]) -> ExitCode:
    """Say what the operating system refused. A path that the command line names makes it a wrong request."""
    if isinstance(error, MemoryError):
        output.print_error("there is not enough memory", "", "end other programs, or give smaller inputs")
        return ExitCode.INFRASTRUCTURE
    path = str(error.filename) if error.filename is not None else ""
    reason = error.strerror or str(error)
    cure = "check that path: its name, its permissions, the free space of its disk ('perfbisect doctor')"
    output.print_error(f"{path}: {reason}" if path else f"this machine refuses: {reason}", "", cure)
    named = path and any(_names(argument, path) for argument in arguments)
    return ExitCode.WRONG_REQUEST if named else ExitCode.INFRASTRUCTURE


def _names(argument: str, path: str) -> bool:
    """Return whether an argument, or its value, is a path or a folder above it; 'import' names no file."""
    where = Path(os.path.realpath(path))
    values = (text for text in (argument, argument.partition("=")[2]) if text)
    return any(where.is_relative_to(os.path.realpath(text)) for text in values)


def _discard_output() -> None:
    """Send what is left in the buffers to /dev/null, so that the end of the process does not fail again."""
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _usage_error(error: typer.TyperException) -> tuple[str, str]:
    """Return message and cure of a usage error; those of wrong choices and numbers in our own words."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "perfbisect"
    cure = f"'{path} --help' says what it understands"
    option = getattr(error, "option_name", None)
    # Only Typer's NoSuchOption has possibilities.
    if context is not None and option is not None and hasattr(error, "possibilities"):
        return describe_unknown_option(option, error.possibilities or (), context.find_root().command, path)
    from bisector.schemas.refusal import describe_wrong_value

    message = describe_wrong_value(error.__cause__)
    if not (message and isinstance(error, typer.BadParameter)):
        return " ".join(error.format_message().split()), cure  # a line for each choice of what is missing
    name = error.param.get_error_hint().strip("'") if error.param is not None else "a value"
    choice = _NO_CHOICE.fullmatch(message)
    if choice is None:
        return f"{name}: {message}", cure
    known = re.findall("'([^']*)'", choice["known"])
    value = ast.literal_eval(choice["value"])
    return f"{name}: unknown value '{value}'{nearest(value, known)}", f"write one of {', '.join(known)}"
