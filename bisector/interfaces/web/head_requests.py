"""HEAD is answered like GET, without the body (RFC 9110, 9.3.2): FastAPI's routes take GET alone."""

from __future__ import annotations

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadLikeGet:
    """ASGI middleware. A route that takes HEAD itself answers it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        refused = False

        async def send_unless_refused(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                refused = message["status"] == HTTPStatus.METHOD_NOT_ALLOWED
            if not refused:
                await send(message)

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                # Ends the answer, and the server says so to what would send a file or a stream of events.
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope}, receive, send_unless_refused)  # routes write into it
        if refused:  # the server keeps the scope, and leaves out bodies by its method
            await self._app({**scope, "method": "GET"}, receive, send_head)
