"""Copying into a database that somebody uses already: what nobody's work is in yields."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.store.copy_tables import copy_tables
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.outbox.sql_outbox import SqlOutbox


def test_what_a_worker_told_of_the_new_database_meanwhile_is_replaced(tmp_path: Path) -> None:
    """A worker that was started with the new address too early keeps until when there are messages."""
    old, new = (open_state_file(tmp_path / name) for name in ("old.sqlite", "new.sqlite"))
    SqlOutbox(old).tell_until("mail", 5.0)
    SqlOutbox(new).tell_until("mail", 7.0)
    SqlOutbox(new).tell_until("changes", 7.0)
    copy_tables(old, new, lambda _: None)
    assert SqlOutbox(new).told_until("mail") == 5.0
    assert SqlOutbox(new).told_until("changes") is None, "the old one has none"
