"""Many ask whether something has changed; the database is asked once a second."""

from __future__ import annotations

from bisector.app.operations.changes import Changes


def test_many_share_one_look_and_a_page_gets_its_own() -> None:
    looks, now = iter(["a", "b", "c"]), [10.0]
    changes = Changes(lambda: next(looks), seconds=1.0, clock=lambda: now[0])
    assert [changes.latest(), changes.latest()] == ["a", "a"]
    now[0] = 11.0
    assert changes.latest() == "b"
    assert changes.now() == "c"  # not what another one was told a moment ago
    now[0] = 11.9
    assert changes.latest() == "c"
