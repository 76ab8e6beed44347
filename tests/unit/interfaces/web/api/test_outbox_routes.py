"""Which messages the API lists, and what is written down of who lets one go or stops it."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from bisector.app.mail.delivery import outbox_of
from bisector.app.wiring import Wiring
from bisector.model.outbox import LAB, Key, Message

Written = Callable[[], tuple[str, str, str, str]]


def put(served: Wiring, about: str) -> int:
    key, message = Key(about, "w", "ended", LAB), Message(("lab@example.org",), about, "text")
    entry = outbox_of(served).put(key, "mail", message, "waiting", by="p")
    assert entry is not None
    return entry.number


def test_who_lets_a_message_go_or_stops_it_is_written_down(
    admin: httpx.Client, served: Wiring, written: Written
) -> None:
    one, other = put(served, "one"), put(served, "other")
    assert admin.post(f"/outbox/{one}/approve").json()["state"] == "approved"
    assert written() == ("admin", "mail approve", str(one), "")
    assert admin.post(f"/outbox/{other}/stop", json={"reason": "known"}).json()["state"] == "stopped"
    assert written() == ("admin", "mail stop", str(other), "known")
    kept = [(entry.state, entry.by, entry.note) for entry in map(outbox_of(served).entry, (one, other))]
    assert kept[0][:2] == ("approved", "admin") and kept[1] == ("stopped", "admin", "known")
    before = written()
    assert admin.post("/outbox/99/approve").status_code == 404
    assert admin.post(f"/outbox/{other}/stop", json={}).status_code == 400, "it is stopped already"
    assert written() == before


def test_so_many_of_the_latest_are_listed(admin: httpx.Client, served: Wiring) -> None:
    first, *_, last = [put(served, f"{number}") for number in range(3)]
    outbox_of(served).stop(first, "ann", "")
    assert [row["number"] for row in admin.get("/outbox", params={"limit": 1}).json()] == [last, last - 1]
    assert len(admin.get("/outbox").json()) == 3
