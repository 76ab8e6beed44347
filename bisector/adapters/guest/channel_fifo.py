"""Lines over a pair of FIFOs, which QEMU joins to a serial port of a guest.

A FIFO has no limit on the length of its path (a socket's is 108 bytes, which folders of boots exceed), and
needs nobody at the other end while the guest runs by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path

from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import LineClosed, LineReader
from bisector.errors import InfrastructureError

_CHUNK = 1 << 16
"""Bytes read at once: the capacity of a FIFO on Linux (pipe(7))."""

_SEND_SECONDS = 5.0
"""How long a command may wait for room in the FIFO. Chosen: QEMU empties it at once unless it hangs."""


class FifoLine:
    """See `adapters/system/channel.py`. Make it before QEMU is started; `path` is what QEMU gets."""

    def __init__(self, path: Path) -> None:
        """Make PATH.in (to the guest) and PATH.out (from it). Raises InfrastructureError."""
        self.path = path
        self._into, self._out = path.with_name(path.name + ".in"), path.with_name(path.name + ".out")
        self._reader = LineReader("the guest at its serial port", self._read)
        self._fds: list[int] = []
        try:
            for end in (self._into, self._out):
                end.unlink(missing_ok=True)
                os.mkfifo(end, 0o600)
            # Readable and writable: opening never waits for QEMU, and a line is never lost before it comes.
            self._fds.append(os.open(self._into, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            self._fds.append(os.open(self._out, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            self.close()
            raise InfrastructureError(f"cannot make FIFOs at {path}: {error.strerror}") from error

    def send(self, text: str) -> None:
        """Send one line. Raises LineClosed if the other side takes nothing."""
        self._reader.restart_count()
        data = memoryview(text.encode() + b"\n")
        deadline = awake_seconds() + _SEND_SECONDS
        while data:
            if not self._fds:
                raise LineClosed("the line to the guest is closed")
            try:
                data = data[os.write(self._fds[0], data) :]
            except BlockingIOError:
                if awake_seconds() > deadline:
                    raise LineClosed("the guest's serial port takes no more") from None
                select.select([], [self._fds[0]], [], 0.1)

    def receive(self, timeout: float) -> str:
        """Return the next line; carriage returns are dropped. Raises LineSilent, LineClosed."""
        return self._reader.receive(timeout).replace("\r", "")

    def close(self) -> None:
        """Close and remove both FIFOs. Never raises."""
        for fd in self._fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()
        for end in (self._into, self._out):
            with contextlib.suppress(OSError):
                end.unlink(missing_ok=True)

    def _read(self, timeout: float) -> bytes | None:
        """Wait for bytes; an end of the stream counts only once somebody has had it open for writing."""
        if not self._fds:
            raise LineClosed("the line to the guest is closed")
        poll = select.poll()
        poll.register(self._fds[1], select.POLLIN)
        events = poll.poll(timeout * 1000)
        if not events:
            return None
        try:
            data = os.read(self._fds[1], _CHUNK)
        except BlockingIOError:
            return None
        return data if data or events[0][1] & select.POLLHUP else None
