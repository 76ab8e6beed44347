"""Answers that go on: events as a server sends them, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from bisector.model.printable import printable_json

LOOKS_OF_A_TOKEN = 20
"""Looks between those at the token: a revoked one sees nothing after 10 to 20 s."""
SILENT_LOOKS = 30
"""Looks without an event, then a comment is sent: proxies close streams that are silent for a minute."""


class SentEvents(StreamingResponse):
    """A stream that says when nobody follows it any more."""

    done: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.done()


def line(values: dict[str, Any]) -> str:
    """Return values as the data of an event."""
    return printable_json(values).replace("\n", " ")
