"""Consoles over the network: a console server's TCP port, plain or telnet; the kernel's netconsole."""

from __future__ import annotations

import contextlib
import re
import select
import socket
from abc import abstractmethod

from bisector.errors import InfrastructureError

_CONNECT_SECONDS = 10.0
"""Timeout of a connection to a console server of the lab's own network."""

_READ_BYTES = 1 << 16
"""More than a UDP packet can have."""

_IDLE_SECONDS = 30
_PROBE_SECONDS = 10
_PROBES = 3
"""TCP's keep-alive: a console server that lost its power is noticed after a minute of silence."""

_COMMAND = re.compile(
    rb"\xff(?:(?P<byte>\xff)|\xfa(?:[^\xff]|\xff[^\xf0]){0,500}?\xff\xf0|[\xfb-\xfe].|[\xf0-\xf9])"
    rb"|(?P<begun>\xff(?:[\xfb-\xfe]?|\xfa.{0,503})\Z)",
    re.DOTALL,
)
"""A command of telnet (RFC 854): a byte 0xff, a subnegotiation, an option offered or asked for, another; or
the beginning of one at the end of what came."""


class _SocketStream:
    """See `ConsoleStream`."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    def read(self, timeout: float) -> bytes | None:
        """See `ConsoleStream.read`."""
        try:
            if not select.select([self._socket], [], [], timeout)[0]:
                return None
            return self._receive()
        except ConnectionError:
            return b""

    @abstractmethod
    def _receive(self) -> bytes | None: ...

    def close(self) -> None:
        """See `ConsoleStream.close`."""
        with contextlib.suppress(OSError):
            self._socket.close()


class TcpStream(_SocketStream):
    """A port of a console server. Offers of telnet are left unanswered, which refuses them (RFC 854)."""

    def __init__(self, address: str, port: int) -> None:
        """Connect. Raises OSError."""
        opened = socket.create_connection((address.strip("[]"), port), _CONNECT_SECONDS)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        super().__init__(opened)
        self._telnet = TelnetFilter()

    def _receive(self) -> bytes | None:
        data = self._socket.recv(_READ_BYTES)
        return (self._telnet.strip(data) or None) if data else b""


class TelnetFilter:
    """Takes the commands of telnet out of a stream. A plain console has no byte 0xff: UTF-8 never uses it."""

    def __init__(self) -> None:
        self._rest = b""

    def strip(self, data: bytes) -> bytes:
        """Return the text of the next bytes; a command that is not complete yet is kept back."""
        data, self._rest = self._rest + data, b""
        return _COMMAND.sub(self._replace, data)

    def _replace(self, found: re.Match[bytes]) -> bytes:
        self._rest = found["begun"] or b""
        return found["byte"] or b""


class NetconsoleStream(_SocketStream):
    """The packets of one machine's kernel. They are not signed, so others' addresses are not believed."""

    def __init__(self, port: int, source: str) -> None:
        """Listen. source: name or address of the machine. Raises InfrastructureError or OSError."""
        try:
            found = socket.getaddrinfo(source.strip("[]"), None, type=socket.SOCK_DGRAM)
        except socket.gaierror as error:
            raise InfrastructureError(
                f"netconsole: the address of '{source}' is not known",
                details=str(error),
                cure="write the address that the packets come from as 'source' into perfbisect_console",
            ) from error
        family = found[0][0]
        self._sources = {str(address[0]) for known, _, _, _, address in found if known == family}
        opened = socket.socket(family, socket.SOCK_DGRAM)
        try:
            opened.bind(("", port))
        except OSError:
            opened.close()
            raise
        super().__init__(opened)

    def _receive(self) -> bytes | None:
        data, sender = self._socket.recvfrom(_READ_BYTES)
        return data if data and sender[0] in self._sources else None
