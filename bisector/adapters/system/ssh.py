"""SSH with paramiko: one connection, commands with deadlines, conversations; host keys always checked.

No keep-alive messages are sent: each would wake the guest in the middle of a run.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import paramiko

from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import MAX_BYTES, LineClosed, LineFlood, LineReader, LineSilent
from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError

log = logging.getLogger(__name__)
logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # it logs tracebacks of what we raise anyway

_READ_BYTES = 1 << 16

_OUTPUT_BYTES = 16 << 20
"""Of a command that is run to its end, and of the standard error of any: all of them print some lines."""

_CUT_OFF = ("transport shut down or saw EOF", "Authentication timeout")
"""paramiko's words where nobody refused the key: the machine went down, or hung, before it had answered."""

NO_EXIT_CODE = -1
"""paramiko's for a command that a signal ended, or of which the connection took the end along."""

_STDERR_BYTES = 1 << 16
"""The end of a program's standard error that is kept, beside its lines."""

_WINDOW_BYTES = 1 << 22
"""More than what can wait in a channel: paramiko's window is 2 MiB."""

_DRAIN_SECONDS = 0.25
"""How often standard error is read while nothing comes on the other stream."""


class SSHRefused(InfrastructureError):
    """Nobody answers at the address (yet): refused, no route, timeout, or the connection broke off early."""


class UnverifiedHost(InfrastructureError):
    """Who answers is not known to be the machine that was meant: no host key is pinned, or another one."""


class LoginRefused(InfrastructureError):
    """Nobody lets us in there: our key is missing here or not accepted, or there is no common algorithm."""


class SSH:
    """One open connection. Use as a context manager, or call `close`."""

    def __init__(self, host: SSHHost, timeout: float = 10.0, login_timeout: float | None = None) -> None:
        """Connect within `timeout` seconds; then log in, by default within as many again.

        Raises SSHRefused when nobody answers (worth another try), InfrastructureError when the host key or
        our key is not accepted (not worth one).
        """
        self.host, self._open_seconds = host, max(10.0, login_timeout or 0.0)
        self._client = _connect(host, timeout, login_timeout or timeout)

    def __enter__(self) -> SSH:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and everything on it. Never raises."""
        with contextlib.suppress(Exception):
            self._client.close()

    def run(self, command: Sequence[str], *, timeout: float = 30.0, check: bool = True) -> CompletedCommand:
        """Run a command to its end.

        Raises LineSilent at the deadline, LineClosed when the connection dies, InfrastructureError for too
        much output or (with check) for a code other than 0.
        """
        line = SSHLine(self._start(command, merge=True), self.host, max_bytes=_OUTPUT_BYTES)
        deadline = awake_seconds() + timeout
        lines: list[str] = []
        try:
            lines += line.receive_all(timeout)
            code = line.exit_code(max(0.0, deadline - awake_seconds()))
        except LineSilent as error:
            raise LineSilent(
                f"'{command[0]}' on {self.host} did not end within {timeout:.0f} s",
                details="\n".join(lines[-20:]),
            ) from error
        except LineFlood as error:
            raise InfrastructureError(f"'{command[0]}': {error.message}", details=error.details) from error
        finally:
            line.close()
        output = "".join(f"{text}\n" for text in lines)
        if check and code == NO_EXIT_CODE:
            raise LineClosed(f"the connection to {self.host} broke before '{command[0]}' had ended")
        if check and code != 0:
            raise InfrastructureError(
                f"'{command[0]}' on {self.host} failed with code {code}",
                details=f"{shlex.join(command)}\n{output[-4000:]}",
            )
        return CompletedCommand(tuple(command), code, output)

    def save(self, command: Sequence[str], path: Path, *, timeout: float, max_bytes: int) -> CompletedCommand:
        """Run a command and write its standard output to a file; return its standard error as `output`.

        Raises InfrastructureError after `timeout` seconds and beyond `max_bytes` bytes, LineClosed when the
        connection dies.
        """
        channel = self._start(command)
        deadline = awake_seconds() + timeout
        try:
            with path.open("wb") as file:
                while True:
                    left = deadline - awake_seconds()
                    if left <= 0:
                        raise TimeoutError
                    channel.settimeout(left)
                    data = channel.recv(_READ_BYTES)
                    if not data:
                        break
                    file.write(data)
                    if file.tell() > max_bytes:
                        raise InfrastructureError(
                            f"'{command[0]}' on {self.host} sent more than {max_bytes >> 20} MiB"
                        )
            code = SSHLine(channel, self.host).exit_code(max(0.0, deadline - awake_seconds()))
            stderr = channel.recv_stderr(_READ_BYTES) if channel.recv_stderr_ready() else b""
        except (TimeoutError, LineSilent) as error:
            raise InfrastructureError(
                f"'{command[0]}' on {self.host} did not end within {timeout:.0f} s"
            ) from error
        except (EOFError, paramiko.SSHException) as error:
            raise LineClosed(f"the connection to {self.host} broke", details=str(error)) from error
        except OSError as error:
            raise InfrastructureError(f"cannot write {path}", details=str(error)) from error
        finally:
            channel.close()
        if code == -1:
            raise LineClosed(f"the connection to {self.host} broke while it sent a file")
        return CompletedCommand(tuple(command), code, stderr.decode(errors="replace"))

    def talk(self, command: Sequence[str]) -> SSHLine:
        """Start a command and talk with it."""
        return SSHLine(self._start(command), self.host)

    def _start(self, command: Sequence[str], *, merge: bool = False) -> paramiko.Channel:
        try:
            transport = self._client.get_transport()
            if transport is None:
                raise LineClosed(f"the connection to {self.host} is closed")
            channel = transport.open_session(timeout=self._open_seconds)
            channel.set_combine_stderr(merge)
            channel.exec_command(shlex.join(command))
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise LineClosed(f"the connection to {self.host} broke", details=str(error)) from error
        return channel


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
            return self._channel.recv(_READ_BYTES)
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
        if self._stderr_bytes > _OUTPUT_BYTES:
            raise LineFlood(f"{self._host} sent more than {_OUTPUT_BYTES >> 20} MiB on standard error")

    def _last_words(self) -> str:
        with contextlib.suppress(Exception):
            self._drain_stderr()
        return self._stderr.decode(errors="replace").strip()


def _connect(host: SSHHost, timeout: float, login_timeout: float) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    if not host.known_hosts.is_file():
        raise _unknown_key(host, f"{host.known_hosts} does not exist")
    if not host.key.is_file():
        raise LoginRefused(
            f"cannot connect to {host}: {host.key} does not exist",
            cure=f"name the key that opens it, or make one: ssh-keygen -t ed25519 -f {host.key}",
        )
    try:
        client.load_host_keys(str(host.known_hosts))
        client.connect(
            host.address,
            port=host.port,
            username=host.user,
            key_filename=str(host.key),
            timeout=timeout,
            banner_timeout=login_timeout,
            auth_timeout=login_timeout,
            allow_agent=False,
            look_for_keys=False,
        )
    except paramiko.BadHostKeyException as error:
        client.close()
        raise UnverifiedHost(
            f"{host} shows another host key than the one pinned in {host.known_hosts}",
            details=str(error),
            cure="if the machine was installed anew, replace its line there; if not, somebody is in between",
        ) from error
    except paramiko.AuthenticationException as error:
        client.close()
        if any(sign in str(error) for sign in _CUT_OFF):
            raise SSHRefused(f"{host} ended the connection before it was made", details=str(error)) from error
        raise LoginRefused(
            f"{host} does not accept the key {host.key}",
            details=str(error),
            cure=f"add {host.key}.pub to ~{host.user}/.ssh/authorized_keys there",
        ) from error
    except paramiko.ssh_exception.IncompatiblePeer as error:
        client.close()
        raise LoginRefused(
            f"{host} and paramiko have no algorithm in common",
            details=str(error),
            cure="let its sshd_config offer KexAlgorithms curve25519-sha256@libssh.org",
        ) from error
    except (TimeoutError, socket.gaierror, paramiko.ssh_exception.NoValidConnectionsError) as error:
        client.close()
        raise SSHRefused(f"{host} does not answer", details=str(error)) from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        client.close()
        if "not found in known_hosts" in str(error):
            raise _unknown_key(host, f"no line for it in {host.known_hosts}") from error
        raise SSHRefused(f"{host} ended the connection before it was made", details=str(error)) from error
    return client


def _unknown_key(host: SSHHost, details: str) -> UnverifiedHost:
    return UnverifiedHost(
        f"the host key of {host} is not known",
        details=details,
        cure=f"check the key, then: ssh-keyscan -p {host.port} {host.address} >> {host.known_hosts}",
    )
