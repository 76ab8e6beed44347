"""Looks for a kernel's death in all that a console prints, which comes in pieces of any size."""

from __future__ import annotations

import codecs
from collections import deque

from bisector.linux.console_text import clean_text, is_death, tail

_LINES = 120
"""Before and after the message that are kept: the trace of an Oops, what firmware prints behind a panic."""

_LINE_CHARACTERS = 4096
"""Of a line that are kept, and of one without an end that are searched at once; the kernel's have 1,024."""

_OVERLAP = 64
"""Characters that two parts of a line without an end have in common: longer than each message."""


class DeathWatch:
    """Remembers whether, and how, the kernel died. Memory is bounded whatever comes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._rest = ""
        self._left: int | None = None
        """Lines after the message that are still to be kept, None before it came."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > _LINE_CHARACTERS:
            self._take(self._rest)
            self._rest = self._rest[-_OVERLAP:]
        elif self._left is None and is_death(clean_text(self._rest)):
            self._begin_end()

    def death(self) -> str | None:
        """Return what was printed, from the first sign of a crash on, if the kernel has died."""
        if self._left is None:
            return None
        last = [clean_text(self._rest)] if self._left else []
        return tail("\n".join((*self._lines, *last)))

    def _take(self, line: str) -> None:
        if self._left == 0:
            return
        text = clean_text(line)
        if self._left is not None:
            self._left -= 1
        elif is_death(text):
            self._begin_end()
        self._lines.append(text[:_LINE_CHARACTERS])

    def _begin_end(self) -> None:
        self._lines = deque(self._lines, maxlen=2 * _LINES + 1)
        self._left = _LINES
