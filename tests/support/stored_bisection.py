"""Bisections in a store, as the commands that show them find one: no engine, no lab, no repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.store.sql_store import SqlStore
from bisector.app import wiring
from bisector.interfaces.cli import services
from bisector.model.records import Booted, Built, Left, Measure, Ran
from bisector.ports import Stored
from bisector.testing.fakes import METRIC, FakeSource
from tests.support import fake_bisection


def store_bisections(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SqlStore:
    """Store 'fake-old', cancelled, and 'fake-new', with one boot of its good end; return the store."""
    lab = fake_bisection.a_lab()
    store = SqlStore(folder / "state" / "perfbisect.sqlite")
    request = fake_bisection.accepted(lab).model_dump_json()
    store.create(Stored("fake-old", 1.0, request, "cancelled", lab.graph))
    store.create(Stored("fake-new", 2.0, request, "running", lab.graph))
    good = lab.graph.good
    store.decide("fake-new", Measure(good, 2, "verify", "the good end comes first"))
    for record in (
        Built(good, True, 60.0, binary="a"),
        Booted("b1", good, "fake", True, 10.0, 100.0, purpose="verify"),
        Ran("b1", 0, {METRIC: 100.0}, 2.0, 102.0),
        Ran("b1", 1, {METRIC: 101.0}, 2.0, 104.0),
        Left("b1"),
    ):
        store.append("fake-new", record)
    for module in (wiring, services):
        monkeypatch.setattr(module, "source", lambda settings, repo: FakeSource(lab.graph), raising=False)
    return store
