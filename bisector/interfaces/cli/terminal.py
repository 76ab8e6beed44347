"""The one exit of text: what is written to stdout and stderr is made printable, whoever wrote it.

Commands print with `print`, libraries and threads with what they have; all of it goes through a
`PrintableStream`. perfbisect's own colours pass, because `own` marks them with what nobody else can know.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from bisector.errors import InfrastructureError
from bisector.model.printable import printable


class ReaderGone(Exception):
    """Whoever read the output, such as `head`, has ended."""


class PrintableStream:
    """A text stream that shows control characters instead of sending them."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._mark = f"\x1b{os.urandom(8).hex()}"

    def own(self, sequence: str) -> str:
        """Return an escape sequence in a form that `write` lets pass."""
        return f"{self._mark}{sequence}{self._mark}"

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        parts = text.split(self._mark)
        with _told_as_ours():
            self.stream.write("".join(part if i % 2 else printable(part) for i, part in enumerate(parts)))
        return len(text)

    def flush(self) -> None:
        """Send what is buffered."""
        with _told_as_ours():
            self.stream.flush()

    def writelines(self, lines: list[str]) -> None:
        """Write several texts."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the stream's own
        return getattr(self.stream, name)


@contextlib.contextmanager
def _told_as_ours() -> Iterator[None]:
    """Raise ReaderGone or InfrastructureError where the operating system does not take the output."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise InfrastructureError(
            f"the output cannot be written: {error.strerror}",
            cure="free space where it goes, or write it to another place",
        ) from error


def guard_streams() -> None:
    """Put stdout and stderr behind the exit, for the rest of the process.

    What the encoding of the locale lacks is shown as an escape there: a name of a commit is no failure.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, PrintableStream):  # None: it was closed
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, PrintableStream(stream))


def write_document(text: str) -> None:
    """Write to stdout what programs read, which is in UTF-8 whatever the encoding of the locale is."""
    stream = unguarded(sys.stdout)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def own(sequence: str, stream: TextIO) -> str:
    """Return an escape sequence of perfbisect's, to be written to the stream within a text."""
    return stream.own(sequence) if isinstance(stream, PrintableStream) else sequence


def unguarded(stream: TextIO) -> TextIO:
    """Return the stream behind the exit, for a library that draws on a terminal and gets printable texts."""
    return stream.stream if isinstance(stream, PrintableStream) else stream
