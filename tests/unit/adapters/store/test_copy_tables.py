"""Copying into a database that somebody uses already: what nobody's work is in yields."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.store import copy_tables as tables
from bisector.adapters.store.copy_tables import copy_tables
from bisector.adapters.store.database import Database
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.outbox.sql_outbox import SqlOutbox
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.engine.membership import join, requeue_unleased
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear


def test_what_a_worker_told_of_the_new_database_meanwhile_is_replaced(tmp_path: Path) -> None:
    """A worker that was started with the new address too early keeps until when there are messages."""
    old, new = (open_state_file(tmp_path / name) for name in ("old.sqlite", "new.sqlite"))
    SqlOutbox(old).tell_until("mail", 5.0)
    SqlOutbox(new).tell_until("mail", 7.0)
    SqlOutbox(new).tell_until("changes", 7.0)
    copy_tables(old, new, lambda _: None)
    assert SqlOutbox(new).told_until("mail") == 5.0
    assert SqlOutbox(new).told_until("changes") is None, "the old one has none"


def left_by_a_killed_worker(path: Path) -> Database:
    """Return a database with a bisection that was executed, and a testbed, in the hands of nobody else."""
    database = open_state_file(path)
    SqlStore(database).create(Stored("one", 1.0, "{}", "running", linear(3)))
    with join(SqlCoordinator(database), "killed", path.parent) as killed:
        assert killed.acquire_bisection("one") is not None
        assert killed.acquire_testbed("guest") is not None
        copied = path.with_name("killed.sqlite")
        database.execute("VACUUM INTO :path", path=str(copied))
    return open_state_file(copied)


def test_nobody_holds_or_wants_what_was_copied(tmp_path: Path) -> None:
    old, new = left_by_a_killed_worker(tmp_path / "old.sqlite"), open_state_file(tmp_path / "new.sqlite")
    SqlCoordinator(old).register("first-in-line", "other")
    held = [lease.resource for lease in SqlCoordinator(old).leases()]
    assert "testbed guest" in held and SqlCoordinator(old).acquire("testbed guest", "first-in-line") is None
    copy_tables(old, new, lambda _: None)
    assert SqlCoordinator(new).leases() == [] and len(SqlCoordinator(old).leases()) == len(held)
    requeue_unleased(SqlStore(new), SqlCoordinator(new))
    assert SqlStore(new).status("one") == "queued"
    SqlCoordinator(new).register("next", "other")
    lease = SqlCoordinator(new).acquire("testbed guest", "next")
    assert lease is not None and lease.epoch == 2, "a free one that nobody waits for; epochs go on"


def test_what_was_copied_with_leases_of_nobody_is_free_once_a_worker_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As databases are that were moved by versions that copied leases as they were."""
    monkeypatch.setattr(tables, "_free_leases", lambda *_: None)
    old, new = left_by_a_killed_worker(tmp_path / "old.sqlite"), open_state_file(tmp_path / "new.sqlite")
    copy_tables(old, new, lambda _: None)
    coordinator, store = SqlCoordinator(new), SqlStore(new)
    assert "testbed guest" in [lease.resource for lease in coordinator.leases()]
    requeue_unleased(store, coordinator)
    assert store.status("one") == "running"
    with join(coordinator, "next", tmp_path) as following:
        assert following.acquire_testbed("guest") is not None
        requeue_unleased(store, coordinator)
        assert store.status("one") == "queued"
        coordinator.register("later", "later")
        assert coordinator.acquire("testbed guest", "later") is None, "the living keep what they have"
