"""How commands print: errors with their cure, JSON, tables; colour only on a terminal."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, TextIO

from bisector.errors import PerfbisectError
from bisector.interfaces.cli.terminal import ReaderGone, own, write_document
from bisector.model.printable import printable_json, printable_line
from bisector.report.columns import fit, wrap

_MAX_WIDTH = 1000
"""Characters of a line that are made use of. COLUMNS may name any number, and drawings fill their lines."""
_LINE_START = "\r\x1b[K"
"""Goes to the beginning of the terminal's line and clears it."""
_RED, _GREEN, _YELLOW, _BOLD, _RESET = "31", "32", "33", "1", "\x1b[0m"


def redrawn(stream: TextIO) -> bool:
    """Return whether a line may be drawn again: on a terminal that understands escape sequences.

    Of a terminal without a name nothing is known; git takes it for a dumb one, too.
    """
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def coloured(stream: TextIO) -> bool:
    """Return whether colours may be shown: where lines may be drawn again, unless NO_COLOR is set."""
    return redrawn(stream) and not os.environ.get("NO_COLOR")


def _paint(text: str, code: str, stream: TextIO) -> str:
    if not coloured(stream):
        return text
    return own(f"\x1b[{code}m", stream) + text + own(_RESET, stream)


def good(text: str) -> str:
    """Return the text for stdout, green where colours are shown."""
    return _paint(text, _GREEN, sys.stdout)


def bad(text: str) -> str:
    """Return the text for stdout, red where colours are shown."""
    return _paint(text, _RED, sys.stdout)


def doubtful(text: str) -> str:
    """Return the text for stdout, yellow where colours are shown."""
    return _paint(text, _YELLOW, sys.stdout)


def strong(text: str) -> str:
    """Return the text for stdout, bold where that is shown."""
    return _paint(text, _BOLD, sys.stdout)


def print_error(message: str, details: str, cure: str) -> None:
    """Print the three parts of an error on stderr.

    Message and cure are one line each: a name in them that holds a newline begins no line of ours.
    """
    lines = [f"{_paint('error:', _RED, sys.stderr)} {printable_line(message)}"]
    lines += [f"  {line}" for line in details.rstrip().splitlines()]
    if cure:
        lines.append(f"{_paint('cure:', _GREEN, sys.stderr)} {printable_line(cure)}")
    with contextlib.suppress(OSError, PerfbisectError, ReaderGone):  # nobody can be told then
        if sys.stdout is not None:
            sys.stdout.flush()
    with contextlib.suppress(OSError, PerfbisectError, ReaderGone):
        print("\n".join(lines), file=sys.stderr, flush=True)


def print_note(text: str) -> None:
    """Print a text that is not part of the result, on stderr; on a terminal in place of a status.

    Further lines are indented, so that none of them reads as a note of its own.
    """
    start = own(_LINE_START, sys.stderr) if redrawn(sys.stderr) else ""
    print(start + "\n  ".join(text.splitlines()), file=sys.stderr, flush=True)


def end_question() -> None:
    """Go to the next line after a question that nobody has answered."""
    with contextlib.suppress(OSError, PerfbisectError):  # a full disk, as in `print_error`
        print(file=sys.stderr, flush=True)


def show_status(text: str) -> None:
    """Replace the last line of the terminal on stderr; '' removes it."""
    print(own(_LINE_START, sys.stderr) + text[:100], end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows the current step, on a terminal only; the last one is removed at the end.

    Ctrl-C is heard there at once: to end what a command has started, such as compilers, may take seconds.
    """
    if not redrawn(sys.stderr):
        yield lambda text: None
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # in the middle of a print
            show_status("stopping")
        if callable(before):
            before(number, frame)

    if callable(before):  # not where the signal is ignored, as in the background of a script
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield show_status
    finally:
        if callable(before):
            signal.signal(signal.SIGINT, before)
        show_status("")


def print_json(value: Any) -> None:  # noqa: ANN401 - anything that JSON holds
    """Print a value as JSON on stdout."""
    write_document(printable_json(value) + "\n")


def terminal_width() -> int | None:
    """Return the characters of a line of the terminal, or what COLUMNS says; None where lines have no end.

    What goes to a file or another program is not wrapped: there a row is a line.
    """
    return min(shutil.get_terminal_size((0, 0)).columns, _MAX_WIDTH) or None


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    wrapped: Iterable[str] = (),
    dropped: Iterable[str] = (),
) -> str:
    """Return aligned columns that fit into the terminal; `fit` says how."""
    return "\n".join(fit(header, rows, terminal_width(), wrapped=wrapped, dropped=dropped))


def pairs(values: Mapping[str, str], indent: str = "") -> str:
    """Return 'name  value' lines, aligned; a value of several lines, or that is too long, is indented."""
    width = terminal_width()
    names = max((len(name) for name in values), default=0)
    room = None if width is None else width - len(indent) - names - 2
    lines: list[str] = []
    for name, value in values.items():
        parts = [part for line in value.splitlines() or [""] for part in wrap(line, room)]
        lines += (f"{indent}{'' if at else name:{names}}  {part}".rstrip() for at, part in enumerate(parts))
    return "\n".join(lines)
