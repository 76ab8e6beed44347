"""SSH with paramiko: one connection, commands with deadlines, conversations; host keys always checked.

No keep-alive messages are sent: each would wake the guest in the middle of a run.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import paramiko

from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import CommandUnanswered, LineClosed, LineFlood, LineSilent
from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.adapters.system.ssh_keys import (
    HostKey,
    KeyUnusable,
    host_key_of,
    known_name,
    pinned_keys,
    read_private_key,
)
from bisector.adapters.system.ssh_line import NO_EXIT_CODE, OUTPUT_BYTES, READ_BYTES, SSHLine
from bisector.errors import InfrastructureError

log = logging.getLogger(__name__)
logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # it logs tracebacks of what we raise anyway

_LEAST_START_SECONDS = 10.0
"""Least timeout from the request of a command to its start, even where the login may take less. sshd forks
once more for it, which takes an emulated machine on a busy host seconds."""

_HOST_KEY_SECONDS = 15.0
"""Timeout of connecting and of the key exchange; emulated machines take most of it."""

_CUT_OFF = ("transport shut down or saw EOF", "Authentication timeout")
"""paramiko's words where the key was not refused: the machine went down, or hung, before it had answered."""


class SSHRefused(InfrastructureError):
    """Nothing answers at the address (yet): refused, no route, timeout, or the connection broke off early."""


class AuthenticationFailed(InfrastructureError):
    """Something answers, but one side does not know the other: it may be another machine."""


class UnverifiedHost(AuthenticationFailed):
    """What answers may not be the machine that was meant: no host key is pinned, or another one."""


class LoginRefused(AuthenticationFailed):
    """The login is refused: our key is missing here or not accepted, or there is no common algorithm."""


class SSH:
    """One open connection. Use as a context manager, or call `close`."""

    def __init__(self, host: SSHHost, timeout: float = 10.0, login_timeout: float | None = None) -> None:
        """Connect within `timeout` seconds; then log in, by default within as many again.

        Raises SSHRefused when nobody answers (worth another try), InfrastructureError when the host key or
        our key is not accepted (not worth one).
        """
        self.host, self._start_seconds = host, max(_LEAST_START_SECONDS, login_timeout or timeout)
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

        Raises LineSilent at the deadline, LineClosed when the connection dies, CommandUnanswered,
        InfrastructureError for too much output or (with check) for a code other than 0.
        """
        line = SSHLine(self._start(command, merge=True), self.host, max_bytes=OUTPUT_BYTES)
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
        connection dies, CommandUnanswered.
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
                    data = channel.recv(READ_BYTES)
                    if not data:
                        break
                    file.write(data)
                    if file.tell() > max_bytes:
                        raise InfrastructureError(
                            f"'{command[0]}' on {self.host} sent more than {max_bytes >> 20} MiB"
                        )
            code = SSHLine(channel, self.host).exit_code(max(0.0, deadline - awake_seconds()))
            stderr = channel.recv_stderr(READ_BYTES) if channel.recv_stderr_ready() else b""
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
        """Start a command and exchange lines with it. Raises CommandUnanswered, LineClosed."""
        return SSHLine(self._start(command), self.host)

    def _start(self, command: Sequence[str], *, merge: bool = False) -> paramiko.Channel:
        transport = self._client.get_transport()
        if transport is None:
            raise LineClosed(f"the connection to {self.host} is closed")
        with _closed_when_late(transport, self._start_seconds) as late:
            try:
                channel = transport.open_session()
                channel.set_combine_stderr(merge)
                channel.exec_command(shlex.join(command))
            except (paramiko.SSHException, OSError, EOFError) as error:
                if late.is_set():
                    raise CommandUnanswered(
                        f"{self.host} did not start '{command[0]}' within {self._start_seconds:.0f} s",
                        details="it takes connections and logins; what runs commands there may hang",
                    ) from error
                raise LineClosed(f"the connection to {self.host} broke", details=str(error)) from error
        return channel


@contextlib.contextmanager
def _closed_when_late(transport: paramiko.Transport, seconds: float) -> Iterator[threading.Event]:
    """Close the connection if the block lasts longer; what the block gets is set then.

    paramiko waits for the answer to a request as long as the connection lives, and the kernel of a machine
    whose sshd hangs keeps it alive. A timer would also count the seconds in which this process was stopped.
    """
    ended, late = threading.Event(), threading.Event()
    deadline = awake_seconds() + seconds

    def watch() -> None:
        while (left := deadline - awake_seconds()) > 0:
            if ended.wait(left):
                return
        late.set()
        transport.close()

    threading.Thread(target=watch, name="deadline of an SSH request", daemon=True).start()
    try:
        yield late
    finally:
        ended.set()


def _connect(host: SSHHost, timeout: float, login_timeout: float) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    try:
        for key in pinned_keys(host.known_hosts, host.address, host.port):
            client.get_host_keys().add(known_name(host.address, host.port), key.get_name(), key)
        private = read_private_key(host.key)
    except FileNotFoundError:
        raise _unknown_key(host, f"{host.known_hosts} does not exist") from None
    except OSError as error:
        raise UnverifiedHost(
            f"the host key of {host} is not known",
            details=f"{host.known_hosts}: {error.strerror}",
            cure="have perfbisect_known_hosts name a file that this user can read",
        ) from error
    except KeyUnusable as error:
        raise LoginRefused(
            f"cannot connect to {host}: {error.message}", details=error.details, cure=error.cure
        ) from error
    try:
        client.connect(
            host.address,
            port=host.port,
            username=host.user,
            pkey=private,
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


def fetch_host_key(address: str, port: int) -> HostKey:
    """Return the key that a server shows to whoever asks. It proves nothing yet. Raises SSHRefused."""
    try:
        with contextlib.closing(socket.create_connection((address, port), _HOST_KEY_SECONDS)) as connection:
            transport = paramiko.Transport(connection)
            try:
                transport.start_client(timeout=_HOST_KEY_SECONDS)
                key = transport.get_remote_server_key()
            finally:
                transport.close()
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise SSHRefused(
            f"{address}, port {port}, shows no host key",
            details=str(error),
            cure="switch the machine on, and look at its address, port and firewall",
        ) from error
    return host_key_of(address, port, key)


def _unknown_key(host: SSHHost, details: str) -> UnverifiedHost:
    return UnverifiedHost(
        f"the host key of {host} is not known",
        details=details,
        cure=f"check the key, then: ssh-keyscan -p {host.port} {host.address} >> {host.known_hosts}",
    )
