"""Answers that go on: events as a server sends them, one after the other, look by look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from typing import Any

from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from starlette.types import Receive, Scope, Send

from bisector.errors import PerfbisectError, RecordsAway
from bisector.interfaces.web.problems import document_of
from bisector.model.printable import printable_json

_POLLS_OF_A_TOKEN = 20
"""Looks between those at the token: a revoked one sees nothing after 10 to 20 s."""
_SILENT_LOOKS = 30
"""Looks without an event, then a comment is sent: proxies close streams that are silent for a minute."""

_LOOKS_WITHOUT_DATABASE = 40
"""Looks in a row that find the database server away, each of which waits for it: a quarter of an hour, as all
wait who have reached it."""

Poll = Callable[[], tuple[Sequence[dict[str, Any]], bool]]
"""Returns what has happened since the last poll, and whether more may come. Raises PerfbisectError."""


class SentEvents(StreamingResponse):
    """A stream that notices when its reader has gone. until_sent: is closed then."""

    def __init__(self, events: AsyncIterator[bytes], until_sent: ExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._until_sent = until_sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._until_sent:
            await super().__call__(scope, receive, send)


async def polled_events(
    poll: Poll,
    name: str,
    seconds: float,
    require_valid: Callable[[], None],
    stops: Callable[[], bool],
    end: dict[str, Any] | None = None,
) -> AsyncIterator[bytes]:
    """Yield events of a name as they are seen; last of all 'end', or 'problem' in place of that.

    seconds: between two polls where nothing has happened; require_valid: raises Refused once the user is no
    longer; stops: whether the server does, which ends a stream without 'end'; end: the data of that event,
    None for a stream that has no end.
    """
    silent = polls = away = 0
    try:
        goes_on = True
        while goes_on and not stops():
            polls += 1
            try:
                if polls % _POLLS_OF_A_TOKEN == 0:
                    await asyncio.to_thread(require_valid)
                found, goes_on = await asyncio.to_thread(poll)
                away = 0
            except RecordsAway:
                found, away = (), away + 1
                if away == _LOOKS_WITHOUT_DATABASE:
                    raise
                yield format_sse_event(comment="the database is away")
            for values in found:
                yield format_sse_event(event=name, data_str=_line(values))
            silent = 0 if found else silent + 1
            if silent % _SILENT_LOOKS == _SILENT_LOOKS - 1:
                yield format_sse_event(comment="nothing new")
            if goes_on and not found:
                await asyncio.sleep(seconds)
        if end is not None and not goes_on:
            yield format_sse_event(event="end", data_str=_line(end))
    except PerfbisectError as error:
        yield format_sse_event(event="problem", data_str=_line(document_of(error)))


def _line(values: dict[str, Any]) -> str:
    """Return values as the data of an event."""
    return printable_json(values).replace("\n", " ")
