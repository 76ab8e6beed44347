"""A machine's console: recorded in a file, watched for the kernel's death, opened again when it is lost."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path

from bisector.adapters.machine.console.console_stream import ConsoleStream
from bisector.adapters.machine.machine_parts import ConsoleState
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.console_log import ConsoleLog
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import InfrastructureError, PerfbisectError
from bisector.linux.console_text import clean
from bisector.linux.death_watch import DeathWatch

log = logging.getLogger(__name__)

_END_BYTES = 1 << 16
_END_CHARACTERS = 4000
"""Characters of the console's end that an error quotes, and the bytes that are cleaned to get them:
chosen."""

_READ_SECONDS = 0.2
"""How soon `close` is seen."""

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 15.0
"""Between two attempts to open the console; doubled each time. A BMC that resets itself needs a minute."""

_STEADY_SECONDS = 10.0
"""A connection that lasted so long was a good one: the next attempt comes soon again."""

_OPEN_SECONDS = 5.0
"""A connection that has lasted so long counts as open although nothing came: refusals come sooner."""

_WORDS_CHARACTERS = 200
"""Of the last line of a connection that ended at once: it says why, as 'console is not up'."""

_SERVERS_OWN = re.compile(r"\[(?:Enter `|`|spying|attached|bumped |forced to |no, |-- )[^\]]*\]")
"""What conserver itself says to a client, in lines of its own; the machine may be silent for all that."""

_LOST_FAILURES = 2
"""Failures in a row after which a console is lost; one that could not be opened counts as so many."""

_LEFT = re.compile(rb"Linux version |Restarting system|Starting new kernel")
"""What shows that the kernel before a boot is gone. Its last messages come even if it is set to be quiet."""

_OVERLAP = 32
"""Bytes of the console that are searched again with the next: longer than each of these."""


def _is_of_machine(text: str) -> bool:
    """Return whether a machine has printed some of this. A line that is not whole may become the server's."""
    *lines, last = text.split("\n")
    lines += [] if last.startswith("[") else [last]
    return any(line.strip() and not _SERVERS_OWN.fullmatch(line.strip()) for line in lines)


class RecordedConsole:
    """See `machine_parts.Console`; without anything to open there is no console."""

    def __init__(self, open_stream: Callable[[], ConsoleStream] | None, path: Path) -> None:
        """Begin to listen. Raises InfrastructureError if the file cannot be written."""
        self.path = path if open_stream is not None else None
        self._log = ConsoleLog(path)
        self._lock = threading.Lock()
        self._watch = DeathWatch()
        self._leaving: bytes | None = None
        """The last that the kernel of before printed, while it may not be gone yet."""
        self._heard = False
        self._said = b""
        """The end of what came by the connection of now."""
        self._heard_now = False
        """By the connection of now, which may yet end at once: then that was no machine's."""
        self._failures = 0
        self._reason = ""
        self._keeps = True
        self._opened = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if open_stream is not None:
            with os_errors_reported(f"cannot write {path}"):
                self._log.begin()
            self._thread = threading.Thread(
                target=self._follow, args=(open_stream,), name=f"console {path}", daemon=True
            )
            self._thread.start()

    def begin_boot(self) -> None:
        """Forget what was heard until now: the death of the old kernel must not count against the new one.

        The old kernel may also die at its shutdown, so no death counts until that is over, or the new one has
        `booted`.
        """
        with self._lock:
            self._watch, self._heard, self._leaving = DeathWatch(), False, b""
            self._heard_now = False

    def booted(self) -> None:
        """The kernel answers: each death from now on is its own, whatever the console showed of its start."""
        with self._lock:
            self._leaving = None

    def death(self) -> str | None:
        """See `machine_parts.Console`; sought in what counts, see `begin_boot`."""
        with self._lock:
            return self._watch.death()

    def end(self) -> str:
        """See `machine_parts.Console`."""
        return clean(self._log.end(_END_BYTES))[-_END_CHARACTERS:] if self.path is not None else ""

    def state(self) -> ConsoleState:
        """See `machine_parts.Console`; of this boot."""
        if self._thread is None:
            return "off"
        with self._lock:
            if self._failures >= _LOST_FAILURES:
                return "lost"
            return "heard" if self._heard or self._heard_now else "silent"

    def opened(self, seconds: float) -> bool:
        """Return whether a connection was made; wait so long for it at most, or until none can be made."""
        deadline = awake_seconds() + seconds
        while self.state() == "silent" and awake_seconds() < deadline:
            if self._opened.wait(_READ_SECONDS):
                break
        return self._opened.is_set()

    def reason(self) -> str:
        """Return why the console is lost, '' where it is not."""
        return self._reason if self.state() == "lost" else ""

    def close(self) -> None:
        """See `machine_parts.Console`."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._log.join()

    def _follow(self, open_stream: Callable[[], ConsoleStream]) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            opened = awake_seconds()
            try:
                reason = self._read(open_stream())
            except PowerRefused as error:
                self._lose(error.message, _LOST_FAILURES)
                return  # a wrong password: a BMC locks an account after some tries
            except (PerfbisectError, OSError) as error:
                reason, failures = getattr(error, "message", str(error)), _LOST_FAILURES
            else:
                failures = 1
            if self._stop.is_set():
                return
            if awake_seconds() - opened > _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            self._lose(reason, failures)
            self._stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _read(self, stream: ConsoleStream) -> str:
        """Take what comes until the connection ends; return that it did. Raises PerfbisectError, OSError."""
        self._opened.set()
        opened, ended = awake_seconds(), False
        self._said = b""
        try:
            while not self._stop.is_set():
                data = stream.read(_READ_SECONDS)
                if ended := data == b"":
                    break
                if data:
                    self._take(data)
                if data or awake_seconds() - opened > _OPEN_SECONDS:
                    self._failures = 0
        finally:
            at_once = ended and awake_seconds() - opened < _OPEN_SECONDS
            with self._lock:
                self._heard = self._heard or (self._heard_now and not at_once)
                self._heard_now = False
            stream.close()
        if at_once:
            words = clean(self._said).strip().rpartition("\n")[2][:_WORDS_CHARACTERS]
            raise InfrastructureError("the connection ended at once" + (f": {words}" if words else ""))
        return "the connection ended"

    def _take(self, data: bytes) -> None:
        with self._lock:
            self._watch.feed(self._counted(data))
            self._said = (self._said + data)[-_END_BYTES:]
            self._heard_now = self._heard_now or _is_of_machine(clean(self._said))
        if self._keeps:
            try:
                self._log.append(data)
            except OSError as error:
                self._keeps = False
                log.warning("the console is not kept any more, only watched: %s", error)

    def _counted(self, data: bytes) -> bytes:
        """Return what of this the kernel of this boot may have printed."""
        if self._leaving is None:
            return data
        seen = self._leaving + data
        left = _LEFT.search(seen)
        self._leaving = seen[-_OVERLAP:] if left is None else None
        return b"" if left is None else seen[left.end() :]

    def _lose(self, reason: str, failures: int) -> None:
        with self._lock:
            self._failures += failures
            if reason != self._reason:
                # Users see its state once the boot is up; a later loss would go unnoticed.
                log.log(
                    logging.WARNING if self._heard else logging.INFO,
                    "the console %s is lost: %s",
                    self.path,
                    reason,
                )
            self._reason = reason
