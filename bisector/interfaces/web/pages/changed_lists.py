"""The stream that notifies an open page of lists that what it shows has changed.

It says no more than that; the page then asks for itself again, as whoever looks may see it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.requests import Request
from fastapi.responses import StreamingResponse

from bisector.app.operations.changes import Changes
from bisector.interfaces.web.sent_events import Poll, SentEvents, polled_events
from bisector.interfaces.web.visitors import Reading

router = APIRouter(include_in_schema=False)

_POLL_SECONDS = 1.0
"""Between two polls for changes: people hardly notice a second, and one poll serves all streams of lists."""


@router.get("/changes")
async def follow(
    request: Request, visitor: Reading, since: Annotated[str, Query(max_length=100)] = ""
) -> StreamingResponse:
    """Report each change from a page's revision on. Raises Refused: there are enough streams."""
    changes: Changes = request.app.state.changes
    with ExitStack() as until_sent:
        server = visitor.server
        until_sent.enter_context(server.streams.one(visitor.user.name))
        poll, stops = _poll_of(changes, since), server.stopping.is_set
        events = polled_events(poll, "changed", _POLL_SECONDS, visitor.require_valid, stops)
        return SentEvents(events, until_sent.pop_all())


def _poll_of(changes: Changes, since: str) -> Poll:
    """Return the event for a revision that differs from the last one sent; there is no last revision."""
    seen = since

    def poll() -> tuple[list[dict[str, str]], bool]:
        nonlocal seen
        if (found := changes.latest()) == seen:
            return [], True
        seen = found
        return [{"revision": found}], True

    return poll
