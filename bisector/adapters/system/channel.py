"""A conversation in lines with a program, wherever it runs; what SSH and local processes have in common.

`LineReader` is how text from another side is read: every line and the whole have a limit, the time is linear
in what came, and the deadline holds while data arrives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from bisector.adapters.system.awake_clock import awake_seconds
from bisector.errors import InfrastructureError

MAX_LINE_BYTES = 8 << 20
"""Far above the agent's longest answer: two outputs of a megabyte in base64, and 64 kernel messages of 8 KiB,
each byte six characters of JSON: 6 MiB."""

MAX_BYTES = 2 << 30
"""Of all answers to one command. A monitor sends 1 GiB of files at most, which are 1.4 GiB in base64."""

_SHOWN_BYTES = 500
"""The end of an unfinished line that an error quotes."""


class LineClosed(InfrastructureError):
    """The other side is gone; `details` holds its last output on standard error."""


class LineFlood(LineClosed):
    """The other side sent more than any honest one does; nothing more is read from it."""


class CommandUnanswered(LineClosed):
    """The other side did not start a command in time. We closed the line; it may still be there."""


class LineSilent(InfrastructureError):
    """Nothing came within the time given; the other side may still be there.

    `details` holds the beginning of a line, if that came: its sender stopped in the middle.
    """


class Line(Protocol):
    """Text lines in both directions."""

    def send(self, text: str) -> None:
        """Send one line (without its newline). Raises LineClosed."""
        ...

    def receive(self, timeout: float) -> str:
        """Return the next line without its newline. Raises LineSilent after `timeout` seconds, LineClosed."""
        ...

    def close(self) -> None:
        """End the conversation and the program. Never raises."""
        ...


class LineReader:
    """The lines of a stream of bytes. What is not UTF-8 is replaced."""

    def __init__(
        self,
        who: str,
        read: Callable[[float], bytes | None],
        *,
        max_line: int = MAX_LINE_BYTES,
        max_bytes: float = MAX_BYTES,
        split: bool = False,
        last_words: Callable[[], str] = str,
    ) -> None:
        """Make a reader that has read nothing.

        who: the sender, for errors. read: waits at most so many seconds; returns bytes, b"" at the end of
        the stream, None for silence. split: longer lines are handed out in pieces instead of refused.
        last_words: what else there is to say when the stream ends.
        """
        self._who, self._read, self._last_words = who, read, last_words
        self._max_line, self._max_bytes, self._split = max_line, max_bytes, split
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._bytes = 0
        self._flood: LineFlood | None = None

    def restart_count(self) -> None:
        """Count anew towards the limit of the whole: another command is sent, other answers are due."""
        self._bytes = 0

    def receive(self, timeout: float) -> str:
        """Return the next line without its newline.

        Raises LineSilent after `timeout` seconds without a whole line, LineFlood beyond a limit, LineClosed
        at the end, with an unfinished line in the details.
        """
        if not self._lines:
            self._read_line(awake_seconds() + timeout, timeout)
        return _text(self._lines.popleft())

    def receive_all(self, timeout: float) -> Iterator[str]:
        """Yield every line to the end of the stream, the unfinished last one as well.

        Raises LineSilent when that takes more than `timeout` seconds, LineFlood.
        """
        deadline = awake_seconds() + timeout
        while True:
            # The clock is asked for each piece that is read: a piece can hold thousands of lines.
            while self._lines:
                yield _text(self._lines.popleft())
            if awake_seconds() > deadline:
                raise LineSilent(f"{self._who} did not come to an end within {timeout:.0f} s")
            try:
                self._read_line(deadline, timeout)
            except LineFlood:
                raise
            except LineClosed:
                break
        if rest := self.take_rest():
            yield rest

    def _read_line(self, deadline: float, timeout: float) -> None:
        """Read until there is a whole line; timeout: seconds, for the error."""
        while not self._lines:
            if self._flood is not None:
                raise self._flood
            data = self._read(max(0.0, deadline - awake_seconds()))
            if data:
                self._add(data)
            elif data is not None:
                last_words = f"{self.unfinished()}\n{self._last_words()}".strip()
                raise LineClosed(f"{self._who} has ended the conversation", details=last_words)
            if not self._lines and awake_seconds() >= deadline:
                raise LineSilent(
                    f"{self._who} sent no line within {timeout:.1f} s", details=self.unfinished()
                )

    def take_rest(self) -> str:
        """Return the unfinished last line, once; empty if there is none."""
        rest = _text(self._rest)
        self._rest.clear()
        return rest

    def unfinished(self) -> str:
        """Return the end of the line that has begun."""
        return _text(self._rest[-_SHOWN_BYTES:])

    def _add(self, data: bytes) -> None:
        """Take bytes over. Each is looked at once: only what is new can hold the end of a line."""
        self._bytes += len(data)
        first, *others = data.split(b"\n")
        for line in (first, *others)[:-1]:
            self._extend(line)
            self._lines.append(bytes(self._rest))
            self._rest.clear()
        self._extend(others[-1] if others else first)
        if self._bytes > self._max_bytes:
            self._refuse(f"{self._who} sent more than {_size(self._max_bytes)}")

    def _extend(self, data: bytes) -> None:
        self._rest += data
        if len(self._rest) <= self._max_line:
            return
        if not self._split:
            self._refuse(f"{self._who} sent a line of more than {_size(self._max_line)}")
        while len(self._rest) > self._max_line:
            self._lines.append(bytes(self._rest[: self._max_line]))
            del self._rest[: self._max_line]

    def _refuse(self, message: str) -> None:
        """Raise LineFlood, now and whenever more is asked for."""
        self._flood = LineFlood(message, details=self.unfinished())
        self._lines.clear()
        raise self._flood


def _text(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")


def _size(count: float) -> str:
    return f"{count / (1 << 20):g} MiB"
