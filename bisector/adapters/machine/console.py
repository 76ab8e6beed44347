"""The serial console of a machine, as a command of the lab prints it: ipmitool, conserver, picocom, ..."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.command import stream_command
from bisector.errors import PerfbisectError
from bisector.linux.console_text import PANIC_MESSAGES

log = logging.getLogger(__name__)

_END_CHARACTERS = 4000
"""Last characters of the console that an error quotes."""


class CommandConsole:
    """A serial console, read by a command of the lab into a file; without a command no death is seen."""

    def __init__(self, command: Sequence[str], path: Path) -> None:
        self.path = path if command else None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if command:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            self._thread = threading.Thread(target=self._follow, args=(tuple(command),), daemon=True)
            self._thread.start()

    def death(self) -> str | None:
        """Return the console's end if the kernel has died."""
        end = self.end()
        return end if any(message in end for message in PANIC_MESSAGES) else None

    def end(self) -> str:
        """Return the last of the console."""
        if self.path is None:
            return ""
        return self.path.read_text(encoding="utf-8", errors="replace")[-_END_CHARACTERS:]

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self, command: tuple[str, ...]) -> None:
        assert self.path is not None
        with self.path.open("a", encoding="utf-8", buffering=1) as file, contextlib.suppress(PerfbisectError):
            code = stream_command(
                command, lambda line: print(line, file=file), timeout=float("inf"), stop=self._stop.is_set
            )
            log.warning("the console's command ended by itself with code %d", code)
