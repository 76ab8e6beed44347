"""One look at the queue serves all who follow a bisection at a server, for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.execution.following import Executors
from bisector.app.operations import event_stream
from bisector.app.operations.event_stream import Places
from tests.support.fake_bisection import store_bisections
from tests.support.servers.web import wiring_in


def test_who_executes_is_asked_every_few_seconds_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_bisections(tmp_path, monkeypatch)
    store.set_status("fake-new", "queued")
    wiring, now, made = wiring_in(tmp_path), [0.0], list[int]()
    asking = Executors

    def counted(state_dir: Path, coordinator: None) -> Executors:
        made.append(1)
        return asking(state_dir, coordinator)

    monkeypatch.setattr(event_stream, "Executors", counted)
    places = Places(lambda: now[0])
    for _ in range(10):
        assert "nobody executes it yet" in places.find(wiring, "fake-new")
    assert len(made) == 1
    store.set_status("fake-old", "queued")
    assert "nobody executes it yet" in places.find(wiring, "fake-old")  # it was not there before
    assert len(made) == 2
    now[0] = event_stream._PLACE_SECONDS
    places.find(wiring, "fake-new")
    assert len(made) == 3
