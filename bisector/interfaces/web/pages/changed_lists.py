"""The stream that tells an open page of lists that what it shows has changed.

It says no more than that; the page then asks for itself again, as whoever looks may see it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.requests import Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from bisector.app.operations.changes import Changes
from bisector.errors import PerfbisectError
from bisector.interfaces.web.problems import document_of
from bisector.interfaces.web.sent_events import LOOKS_OF_A_TOKEN, SILENT_LOOKS, SentEvents, line
from bisector.interfaces.web.visitors import Reading

router = APIRouter(include_in_schema=False)

_LOOK_SECONDS = 1.0


@router.get("/changes")
async def follow(
    request: Request, visitor: Reading, since: Annotated[str, Query(max_length=100)] = ""
) -> StreamingResponse:
    """Tell each change from a page's revision on. Raises Refused: there are enough streams."""
    changes: Changes = request.app.state.changes
    with ExitStack() as until_sent:
        until_sent.enter_context(visitor.server.streams.one(visitor.user.name))
        answer = SentEvents(_events(changes, since, visitor.require_valid), media_type="text/event-stream")
        answer.done = until_sent.pop_all().close
    return answer


async def _events(changes: Changes, since: str, require_valid: Callable[[], None]) -> AsyncIterator[bytes]:
    silent = looks = 0
    try:
        while True:
            looks += 1
            if looks % LOOKS_OF_A_TOKEN == 0:
                await asyncio.to_thread(require_valid)
            found = await asyncio.to_thread(changes.latest)
            if found != since:
                since, silent = found, 0
                yield format_sse_event(event="changed", data_str=line({"revision": found}))
            else:
                silent += 1
                if silent % SILENT_LOOKS == SILENT_LOOKS - 1:
                    yield format_sse_event(comment="nothing new")
            await asyncio.sleep(_LOOK_SECONDS)
    except PerfbisectError as error:
        yield format_sse_event(event="problem", data_str=line(document_of(error)))
