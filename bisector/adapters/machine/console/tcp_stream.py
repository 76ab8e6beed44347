"""A console over TCP: the port of a console server, plain or telnet."""

from __future__ import annotations

import contextlib
import re
import select
import socket

_CONNECT_SECONDS = 10.0
"""Timeout of a connection to a console server of the lab's own network."""

_READ_BYTES = 1 << 16
"""Bytes read at once: chosen, far more than a console sends in a moment."""

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


class TcpStream:
    """A port of a console server. Offers of telnet are left unanswered, which refuses them (RFC 854)."""

    def __init__(self, address: str, port: int) -> None:
        """Connect. Raises OSError."""
        opened = socket.create_connection((address.strip("[]"), port), _CONNECT_SECONDS)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        self._socket = opened
        self._telnet = TelnetFilter()

    def read(self, timeout: float) -> bytes | None:
        """See `ConsoleStream.read`."""
        try:
            if not select.select([self._socket], [], [], timeout)[0]:
                return None
            data = self._socket.recv(_READ_BYTES)
        except ConnectionError:
            return b""
        return (self._telnet.strip(data) or None) if data else b""

    def close(self) -> None:
        """See `ConsoleStream.close`."""
        with contextlib.suppress(OSError):
            self._socket.close()


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
