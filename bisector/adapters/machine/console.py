"""The serial console of a machine, as a command of the lab prints it: ipmitool, conserver, picocom, ..."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.machine.machine_parts import ConsoleState
from bisector.adapters.system.command import stream_command
from bisector.adapters.system.console_log import ConsoleLog
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import PerfbisectError
from bisector.linux.console_text import PANIC_MESSAGES, clean, tail

log = logging.getLogger(__name__)

_END_BYTES = 1 << 16
"""The end of the console in which a death is shown: a panic, and what firmware prints behind it."""

_END_CHARACTERS = 4000
"""Last characters of the console that an error quotes."""


class CommandConsole:
    """A serial console, read by a command of the lab into a file; without a command no death is seen."""

    def __init__(self, command: Sequence[str], path: Path) -> None:
        """Raises InfrastructureError if the file cannot be written."""
        self.path = path if command else None
        self._log = ConsoleLog(path)
        self._dead, self._heard, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if command:
            with os_errors_reported(f"cannot write {path}"):
                self._log.begin()
            self._thread = threading.Thread(target=self._follow, args=(tuple(command),), daemon=True)
            self._thread.start()

    def death(self) -> str | None:
        """Return the console's end, from the kernel's message on, if the kernel has died."""
        return tail(self._read_end()) if self._dead.is_set() else None

    def end(self) -> str:
        """Return the last of the console."""
        return self._read_end()[-_END_CHARACTERS:]

    def state(self) -> ConsoleState:
        """Return whether anything is heard."""
        if self.path is None:
            return "off"
        return "heard" if self._heard.is_set() else "lost" if self._ended.is_set() else "silent"

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._log.join()

    def _read_end(self) -> str:
        return clean(self._log.end(_END_BYTES)) if self.path is not None else ""

    def _follow(self, command: tuple[str, ...]) -> None:
        try:
            with contextlib.suppress(PerfbisectError):
                code = stream_command(
                    command, self._take, timeout=math.inf, max_bytes=math.inf, stop=self._stop.is_set
                )
                log.warning("the console's command ended by itself with code %d", code)
        except OSError as error:
            log.warning("the console is not kept any more: %s", error)
        self._ended.set()

    def _take(self, line: str) -> None:
        self._heard.set()
        self._log.append(line)
        if any(message in line for message in PANIC_MESSAGES):
            self._dead.set()
