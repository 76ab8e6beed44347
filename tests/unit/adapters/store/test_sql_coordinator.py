"""What the SQL coordinator does beyond the contract: between two statements, and as time passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.store.database import Database
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.model.leases import WANTED_TTL_SECONDS, Executor


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_state_file(tmp_path / "x.sqlite")


def test_who_is_heard_of_while_it_is_looked_at_is_not_fenced(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bisections would be executed twice."""
    coordinator, executors = SqlCoordinator(database), SqlCoordinator.executors
    coordinator.register("one", "w")
    database.execute("UPDATE executors SET seen = seen - 60")

    def executors_then_heartbeat(self: SqlCoordinator) -> Sequence[Executor]:
        found = executors(self)
        self.heartbeat("one")
        return found

    lease = coordinator.acquire("guest", "one")
    with monkeypatch.context() as patch:
        patch.setattr(SqlCoordinator, "executors", executors_then_heartbeat)
        assert coordinator.fence_silent(30) == []
    assert coordinator.leases() == [lease]


def test_who_asks_again_keeps_its_turn(database: Database) -> None:
    coordinator = SqlCoordinator(database)
    for name in ("one", "two"):
        coordinator.register(name, name)
    held = coordinator.acquire("guest", "one")
    assert held is not None
    for _ in range(2):
        assert coordinator.acquire("guest", "two") is None
        database.execute(
            "UPDATE leases SET wanted_at = wanted_at - :seconds", seconds=0.75 * WANTED_TTL_SECONDS
        )
    assert coordinator.wanted("one") == {"guest"}
    coordinator.release(held)
    assert coordinator.acquire("guest", "one") is None
