"""The program `perfbisect`: Ctrl-C while its modules are still read ends it as it does later."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

_INTERRUPTED = 130
"""`errors.ExitCode.INTERRUPTED`; nothing may be imported before the handler is there."""


def main() -> None:
    """Read the command line's modules, which takes most of a second, and give the rest to `cli.main`."""
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else a shell wants it ignored
    if handles:
        signal.signal(signal.SIGINT, _end)
    from bisector.interfaces.cli import main as command_line

    if handles:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line()


def _end(*_: object) -> NoReturn:
    if sys.stderr is not None:  # closed by the caller
        print("error: interrupted", file=sys.stderr, flush=True)
    os._exit(_INTERRUPTED)
