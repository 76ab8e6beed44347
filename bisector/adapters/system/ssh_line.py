"""A conversation in lines with a command behind SSH."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import paramiko

from bisector.adapters.system.channel import MAX_BYTES, LineClosed, LineFlood, LineReader, LineSilent
from bisector.adapters.system.ssh_endpoint import SSHHost

READ_BYTES = 1 << 16
"""Bytes read at once: chosen."""

OUTPUT_BYTES = 16 << 20
"""Of a command that is run to its end, and of the standard error of any: all of them print some lines."""

NO_EXIT_CODE = -1
"""paramiko's for a command that a signal ended, or of which the connection took the end along."""

_STDERR_BYTES = 1 << 16
"""The end of a program's standard error that is kept, beside its lines."""

_WINDOW_BYTES = 1 << 22
"""More than what can wait in a channel: paramiko's window is 2 MiB."""

_DRAIN_SECONDS = 0.25
"""How often standard error is read while nothing comes on the other stream."""


class SSHLine:
    """A conversation with a remote command; see `adapters/system/channel.py`."""

    def __init__(self, channel: paramiko.Channel, host: SSHHost, *, max_bytes: int = MAX_BYTES) -> None:
        self._channel = channel
        self._host = host
        self._stderr, self._stderr_bytes = b"", 0
        self._reader = LineReader(str(host), self._read, max_bytes=max_bytes, last_words=self._last_words)

    def send(self, text: str) -> None:
        """Send one line. Raises LineClosed."""
        self._reader.restart_count()
        try:
            self._channel.settimeout(10.0)
            self._channel.sendall(text.encode() + b"\n")
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise LineClosed(
                f"{self._host} has ended the conversation", details=self._last_words()
            ) from error

    def receive(self, timeout: float) -> str:
        """Return the next line. Raises LineSilent after `timeout` seconds, LineClosed at the end."""
        return self._reader.receive(timeout)

    def receive_all(self, timeout: float) -> Iterator[str]:
        """Yield all lines to the end of the command. Raises LineSilent after `timeout` seconds, LineFlood."""
        return self._reader.receive_all(timeout)

    def exit_code(self, timeout: float) -> int:
        """Return the ended command's exit code, or NO_EXIT_CODE. Raises LineSilent."""
        if not self._channel.status_event.wait(timeout):
            raise LineSilent(f"{self._host} did not say how the command ended")
        return self._channel.recv_exit_status()

    def close(self) -> None:
        """Close the channel: the command's standard input ends. Never raises."""
        with contextlib.suppress(Exception):
            self._channel.close()

    def _read(self, timeout: float) -> bytes | None:
        self._drain_stderr()
        self._channel.settimeout(min(max(0.001, timeout), _DRAIN_SECONDS))
        try:
            return self._channel.recv(READ_BYTES)
        except TimeoutError:
            return None
        except (OSError, EOFError, paramiko.SSHException):
            return b""

    def _drain_stderr(self) -> None:
        """Keep the end of standard error. Both streams share one window: a full one would stop the other.

        Raises LineFlood.
        """
        if self._channel.recv_stderr_ready():
            data = self._channel.recv_stderr(_WINDOW_BYTES)
            self._stderr = (self._stderr + data)[-_STDERR_BYTES:]
            self._stderr_bytes += len(data)
        if self._stderr_bytes > OUTPUT_BYTES:
            raise LineFlood(f"{self._host} sent more than {OUTPUT_BYTES >> 20} MiB on standard error")

    def _last_words(self) -> str:
        with contextlib.suppress(Exception):
            self._drain_stderr()
        return self._stderr.decode(errors="replace").strip()
