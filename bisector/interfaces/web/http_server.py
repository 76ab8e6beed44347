"""The server of HTTP: uvicorn, which lets streams end before it waits for the answers under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket


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
