"""Requests refused before anything reads them: unknown hosts, foreign origins, stalling senders.

There are no CORS headers, and a browser sends the cookie of its session (`visitors`) from our pages alone: no
page of another origin can read or change anything. A page that has its own name resolve to this host (DNS
rebinding) names itself in Host.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Iterable
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bisector.interfaces.web.problems import Refused, refused, response_of

_logger = logging.getLogger(__name__)
_SILENT_SECONDS = 30.0
"""Longest pause between two parts of a body: a client that is slower only keeps a place from others."""
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        """hosts: names of this server, beside those of the loopback."""
        self._app = app
        self._hosts = frozenset(name.lower() for name in (*_LOCAL_NAMES, *hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, hand on every other."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
                headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await response_of(refusal)(scope, receive, send_guarded)
            return

        async def receive_in_time() -> Message:
            try:
                return await asyncio.wait_for(receive(), _SILENT_SECONDS)
            except TimeoutError as error:
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT) from error

        too_large = stalled = False

        async def send_safely(message: Message) -> None:
            nonlocal too_large, stalled
            if message["type"] == "http.response.start":
                plain = Headers(scope=message).get("content-type", "").startswith("text/plain")
                if message["status"] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and plain:  # the framework's own
                    too_large = True
                    answer = response_of(refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
                    await answer(scope, receive, send_guarded)
            if not too_large:
                try:
                    async with asyncio.timeout(_SILENT_SECONDS):
                        await send_guarded(message)
                except TimeoutError:
                    stalled = True
                    raise

        try:
            await self._app(scope, receive_in_time if _has_body(scope) else receive, send_safely)
        except Exception:
            if not stalled:
                raise
            _logger.warning("a client has read nothing for %.0f s: its answer is broken off", _SILENT_SECONDS)

    def _refusal(self, headers: Headers) -> Refused | None:
        host = headers.get("host", "")
        name = name_of(host)
        if name not in self._hosts:
            return Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server is not known by the name in the request",
                cure="its administrator lists its names: hosts = [...] below [web] in perfbisect.toml",
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return Refused(
                HTTPStatus.FORBIDDEN,
                "the request comes from a page of another origin",
                cure="send it from a program, or from a page of this server",
            )
        return None


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def name_of(host: str) -> str:
    """Return the name in a Host header without its port, in small letters."""
    name = host.lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
