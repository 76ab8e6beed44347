"""Health checks and uses of testbeds, in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.sql_health import SqlHealth


@pytest.fixture(params=["sqlite", "postgresql"])
def health(request: pytest.FixtureRequest, tmp_path: Path) -> SqlHealth:
    if request.param == "sqlite":
        return SqlHealth(open_state_file(tmp_path / "state.sqlite"))
    return SqlHealth(open_server(request.getfixturevalue("database_url")))


def test_points_of_a_testbed_are_kept_in_their_order(health: SqlHealth) -> None:
    health.add_point("a", {"commit": "1"}, "sound", "first", (1.0, 0.1 + 0.2))
    health.add_point("b", {"commit": "1"}, "failed", "no power")
    health.add_point("a", {"commit": "2"}, "moved", "+10%", (1.1,))
    first, second = health.points("a")
    assert (first.kernel, first.outcome, first.words) == ({"commit": "1"}, "sound", "first")
    assert (first.values, second.values, second.outcome) == ((1.0, 0.1 + 0.2), (1.1,), "moved")
    assert first.at <= second.at
    health.forget_points("a")
    assert (health.points("a"), len(health.points("b"))) == ([], 1)


def test_the_last_use_of_a_testbed(health: SqlHealth) -> None:
    assert health.last_use("a") is None
    health.note_use("a")
    first = health.last_use("a")
    health._database.execute("UPDATE testbed_uses SET at = at - 60")
    health.note_use("a")
    again = health.last_use("a")
    assert first is not None and again is not None and again >= first
    assert health.last_use("b") is None
