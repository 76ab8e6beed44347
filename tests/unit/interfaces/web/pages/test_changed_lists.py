"""When the stream of lists says something: where the page that listens is not of the present revision."""

from __future__ import annotations

import httpx
import pytest

from bisector.app.operations.changes import Changes
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import changed_lists
from bisector.model.stored_bisection import Action


def test_a_change_is_told_once() -> None:
    revision = "1"
    poll = changed_lists._poll_of(Changes(lambda: revision, seconds=0.0), "1")
    assert poll() == ([], True)
    revision = "2"
    assert [poll(), poll()] == [([{"revision": "2"}], True), ([], True)]
    revision = "1"
    assert poll() == ([{"revision": "1"}], True)


def test_a_page_that_is_old_is_told_so_at_once(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_lists, "_POLL_SECONDS", 0.05)

    def first_event(since: str) -> str:
        with client.stream("GET", "/changes", params={"since": since}) as answer:
            return next(line for line in answer.iter_lines() if line.startswith("data:"))

    told = first_event("")
    assert first_event("0123") == told
    lab.store.set_priority("queued-1", 2, Action("given priority 2", "ann", ""))
    assert first_event(told.partition(': "')[2].rstrip('" }')) != told
