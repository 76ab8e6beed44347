"""Reports an event to a webhook: one signed POST.

No redirect is followed, and no private address is asked unless the settings name its host: who gives the URL
must not reach what only this machine can reach.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from bisector.adapters.mail.time_limit import time_limit
from bisector.errors import PerfbisectError
from bisector.model.outbox import Delivery, OutboxEntry
from bisector.model.printable import printable_line
from bisector.schemas.mail_settings import is_loopback

_ANSWER_SECONDS, _DELIVERY_SECONDS = 30.0, 60.0
_USER_AGENT = "perfbisect"
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""All that IANA gives out of IPv6 (RFC 4291, 2.4); site-local and IPv4-compatible addresses are outside."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052, 2.1: a gateway connects these to the IPv4 address of their last 32 bits."""
_PROTOCOL_ASSIGNMENTS = ipaddress.ip_network("192.0.0.0/24")
"""RFC 6890: not global. Python 3.11.7 says so of its first eight alone (CVE-2024-4032)."""


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return what X-Perfbisect-Signature holds: HMAC-SHA256 over time, a dot and the body."""
    return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


class WebhookDeliverer:
    """mail_ports.Deliverer by POST. The URL is the message's only recipient."""

    def __init__(
        self,
        secret: Callable[[], str],
        trusted_hosts: Collection[str] = (),
        *,
        answer_seconds: float = _ANSWER_SECONDS,
        delivery_seconds: float = _DELIVERY_SECONDS,
    ) -> None:
        """secret: of signatures, read when it is needed; trusted_hosts: that may have private addresses."""
        self._secret, self._trusted = secret, frozenset(trusted_hosts)
        self._answer_seconds, self._delivery_seconds = answer_seconds, delivery_seconds
        self._context = ssl.create_default_context()

    def deliver(self, entry: OutboxEntry, may_hand_over: Callable[[], bool]) -> Delivery:
        """POST the text of a message. Never raises for what the network does."""
        (url,) = entry.pending
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        connection: http.client.HTTPConnection | None = None
        try:
            secret = self._secret()
            address = self._address(parts.scheme, host, port)
            if address is None:
                return Delivery(
                    refused={url: f"{host} has a private address, and the settings do not name it"}
                )
            connection = _Pinned(host, port, address, self._answer_seconds)
            if parts.scheme == "https":
                connection.tls = self._context
            connection.connect()
            if not may_hand_over():
                return Delivery(later="another process sends it")
        except PerfbisectError as error:
            return Delivery(later=error.message)
        except (OSError, ValueError) as error:
            if connection is not None:
                connection.close()
            return Delivery(later=printable_line(str(error) or type(error).__name__))
        try:
            with time_limit(lambda: connection.sock, self._delivery_seconds):
                status = self._post(connection, parts.path or "/", parts.query, entry, secret)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Delivery(
                unsure=f"no answer to the POST: {printable_line(str(error) or type(error).__name__)}"
            )
        finally:
            connection.close()
        if 200 <= status < 300:
            return Delivery((url,))
        if status in (429, *range(500, 600)):
            return Delivery(later=f"status {status}")
        return Delivery(refused={url: f"status {status}{', a redirect' if 300 <= status < 400 else ''}"})

    def _post(
        self, connection: http.client.HTTPConnection, path: str, query: str, entry: OutboxEntry, secret: str
    ) -> int:
        body, now = entry.message.text.encode(), str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": _USER_AGENT,
            "X-Perfbisect-Event": entry.message.subject,
            "X-Perfbisect-Delivery": str(entry.number),
            "X-Perfbisect-Timestamp": now,
            "X-Perfbisect-Signature": signature(secret, now, body),
        }
        connection.request("POST", f"{path}?{query}" if query else path, body, headers)
        return connection.getresponse().status

    def _address(self, scheme: str, host: str, port: int) -> str | None:
        """Return an address that may be asked; None: there are private ones. Raises OSError.

        http to this machine comes from its own command line: requests from elsewhere name https alone.
        """
        found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        allowed = host in self._trusted or (scheme == "http" and is_loopback(host))
        return found[0] if allowed or all(map(_is_public, found)) else None


def _is_public(address: str) -> bool:
    """Return whether an address is one of the public internet, as is an IPv4 address that it carries.

    Teredo addresses (2001::/32) are never: Python does not count them as global.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        carried = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            carried = ipaddress.IPv4Address(found.packed[-4:])
        if carried is not None:
            return _is_public(str(carried))
        if found not in _GLOBAL_UNICAST:
            return False
    return found.is_global and not found.is_multicast and found not in _PROTOCOL_ASSIGNMENTS


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked: a second look-up might give another one."""

    tls: ssl.SSLContext | None = None

    def __init__(self, host: str, port: int, address: str, seconds: float) -> None:
        super().__init__(host, port, timeout=seconds)
        self._address = address

    def connect(self) -> None:
        """Connect to the address; TLS verifies the name."""
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self.tls is not None:
            self.sock = self.tls.wrap_socket(self.sock, server_hostname=self.host)
