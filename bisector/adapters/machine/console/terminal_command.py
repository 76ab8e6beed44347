"""A program that wants a terminal, such as `ipmitool sol activate`: its output is read, nothing is typed."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import tty
import uuid
from collections.abc import Mapping, Sequence

from bisector.adapters.system import orphans
from bisector.adapters.system.command import end_process, start_process
from bisector.adapters.system.processes import identity

_READ_BYTES = 1 << 16


class TerminalCommand:
    """A running program with a pseudo-terminal as its input and output; its bytes come as it wrote them."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start it. env: added to this process's environment. Raises InfrastructureError."""
        self._mark = f"{identity(os.getpid())}.{uuid.uuid4().hex}"
        marks = ":".join(part for part in (os.environ.get(orphans.MARK, ""), self._mark) if part)
        self._master, slave = pty.openpty()
        try:
            tty.setraw(slave)  # no echo, no carriage return added
            self._process = start_process(
                command, env={**(env or {}), orphans.MARK: marks}, stdin=slave, stdout=slave
            )
        except BaseException:
            os.close(self._master)
            raise
        finally:
            os.close(slave)

    def read(self, timeout: float) -> bytes | None:
        """Wait at most so many seconds; return bytes, b"" when the program has ended, None for silence."""
        if not select.select([self._master], [], [], timeout)[0]:
            return None if self._process.poll() is None else b""
        try:
            return os.read(self._master, _READ_BYTES)
        except OSError:  # EIO: nobody has the terminal open any more
            return b""

    def close(self) -> None:
        """End the program and whatever it started. Never raises."""
        orphans.end_marked(self._mark)
        end_process(self._process)
        with contextlib.suppress(OSError):
            os.close(self._master)
