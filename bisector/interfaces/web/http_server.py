"""The server of HTTP: uvicorn, which lets streams end before it waits for the answers under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import socket

_HEAD_SECONDS = 30.0
"""How long the head of a request may take, from the connection or its first byte on: it is a packet."""


class HttpConnection(H11Protocol):
    """One of uvicorn, which waits for ever for the head of a request: silent clients take all places."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Expect the head of a request."""
        super().connection_made(transport)
        self._limit_head()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        super().connection_lost(exc)
        self._forget_deadline()

    def _limit_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:  # the head is there
            self._forget_deadline()
        elif self._head is None:
            self._head = self.loop.call_later(_HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _forget_deadline(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class HttpServer(uvicorn.Server):
    """A uvicorn server that says when it stops."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], object]) -> None:
        """on_stop: called once it takes no more requests."""
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the answers under way, and stop."""
        self._on_stop()
        await super().shutdown(sockets)
