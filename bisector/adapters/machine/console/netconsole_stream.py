"""The kernel's netconsole: UDP packets. Machines may share a port; the address tells whose a packet is.

The packets are not signed, so those of other addresses are dropped.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import threading
from collections import deque

from bisector.adapters.system.awake_clock import awake_seconds
from bisector.errors import InfrastructureError

_PACKET_BYTES = 1 << 16
"""More than a UDP packet can have."""

_WAITING_PACKETS = 1000
"""Of one machine, until its console reads them, which it does five times a second; a panic has some 60."""

_PORTS: dict[tuple[int, int], _Port] = {}
_PORTS_LOCK = threading.Lock()


class _Port:
    """An open UDP port, and what came for whom. lock: held by whoever receives, for all."""

    def __init__(self, family: int, port: int) -> None:
        self.lock = threading.Lock()
        self.waiting: dict[str, deque[bytes]] = {}  # by address
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.bind(("", port))
        except OSError as error:
            self._socket.close()
            if error.errno != errno.EADDRINUSE:
                raise
            raise InfrastructureError(
                f"netconsole: another program here listens on UDP port {port}; give this machine another port"
            ) from error

    def receive(self, timeout: float) -> None:
        """Wait for a packet, and put it where its machine's console finds it."""
        if select.select([self._socket], [], [], timeout)[0]:
            with contextlib.suppress(ConnectionError):
                data, sender = self._socket.recvfrom(_PACKET_BYTES)
                packets = self.waiting.get(str(sender[0]))
                if data and packets is not None:
                    packets.append(data)

    def close(self) -> None:
        self._socket.close()


class NetconsoleStream:
    """The packets of one machine's kernel. See `ConsoleStream`."""

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
        self._packets: deque[bytes] = deque(maxlen=_WAITING_PACKETS)
        self._key = (int(family), port)
        with _PORTS_LOCK:
            self._port = _PORTS.get(self._key) or _Port(family, port)
            taken = self._sources & self._port.waiting.keys()
            if taken:
                raise InfrastructureError(
                    f"netconsole: the consoles of two machines come from {min(taken)} to UDP port {port}; "
                    "give each a port of its own"
                )
            _PORTS[self._key] = self._port
            self._port.waiting |= dict.fromkeys(self._sources, self._packets)

    def read(self, timeout: float) -> bytes | None:
        """See `ConsoleStream.read`."""
        deadline = awake_seconds() + timeout
        while not self._packets:
            left = deadline - awake_seconds()
            if left <= 0 or not self._port.lock.acquire(timeout=left):
                return self._packets.popleft() if self._packets else None
            try:
                if not self._packets:
                    self._port.receive(max(0.0, deadline - awake_seconds()))
            finally:
                self._port.lock.release()
        return self._packets.popleft()

    def close(self) -> None:
        """See `ConsoleStream.close`. The last of a port closes it."""
        with _PORTS_LOCK:
            for source in self._sources:
                self._port.waiting.pop(source, None)
            if not self._port.waiting and _PORTS.get(self._key) is self._port:
                del _PORTS[self._key]
                with self._port.lock:
                    self._port.close()
