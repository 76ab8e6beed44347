"""Streams of events: how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bisector.errors import RecordsAway
from bisector.interfaces.web import sent_events
from bisector.interfaces.web.sent_events import Poll, polled_events


def told(poll: Poll, stops_after: int) -> list[str]:
    """Return the kinds of events of a stream on a server that stops after so many polls."""
    polls = 0

    def counted() -> tuple[Any, bool]:
        nonlocal polls
        polls += 1
        return poll()

    async def follow() -> list[bytes]:
        stream = polled_events(counted, "event", 0.0, lambda: None, lambda: polls >= stops_after, {"id": "x"})
        return [text async for text in stream]

    return [text.decode().partition("\n")[0] for text in asyncio.run(follow())]


def test_a_server_that_stops_ends_a_stream_and_not_what_it_tells_of() -> None:
    assert told(lambda: ([{"n": 1}], True), stops_after=2) == ["event: event", "event: event"]


def test_the_end_of_what_is_told_is_told() -> None:
    assert told(lambda: ([{"n": 1}], False), stops_after=9) == ["event: event", "event: end"]
    assert told(lambda: ([], False), stops_after=1) == ["event: end"], "the last look counts"


def test_a_stream_that_has_nothing_to_tell_is_not_closed_by_proxies_for_its_silence() -> None:
    silent = told(lambda: ([], True), stops_after=60)
    assert silent == [": nothing new", ": nothing new"]
    number = iter(range(60))
    seldom = told(lambda: ([{"n": 1}] if next(number) % 20 == 0 else [], True), stops_after=60)
    assert set(seldom) == {"event: event"}, "what is told now and then needs no comments"


def looks(*found: Sequence[dict[str, Any]] | RecordsAway) -> Poll:
    """Return a poll with these results, the last of which ends the stream."""
    left = list(found)

    def poll() -> tuple[Sequence[dict[str, Any]], bool]:
        one = left.pop(0)
        if isinstance(one, RecordsAway):
            raise one
        return one, bool(left)

    return poll


AWAY = RecordsAway("the database does not answer", cure="start the server")


def test_a_stream_outlives_a_database_that_is_away_and_proxies_see_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sent_events, "_LOOKS_WITHOUT_DATABASE", 3)
    comment = ": the database is away"
    seen = told(looks([{"n": 1}], AWAY, AWAY, [{"n": 2}], AWAY, AWAY, []), stops_after=99)
    assert seen == ["event: event", comment, comment, "event: event", comment, comment, "event: end"]
    assert told(looks(AWAY, AWAY, AWAY, []), stops_after=99) == [comment, comment, "event: problem"]
