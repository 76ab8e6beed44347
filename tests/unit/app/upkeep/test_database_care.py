"""What `db prune` removes of the outbox: what was told long ago, and would not be told again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.mail.delivery import outbox_of
from bisector.app.upkeep.database_care import DAY_SECONDS, find_garbage, remove_garbage
from bisector.app.wiring import Wiring
from bisector.model.outbox import LAB, Key, Kind, Message, State
from tests.support.servers.web import wiring_in


def put(wiring: Wiring, about: str, kind: Kind, state: State, days: float) -> None:
    """Put a message into the outbox that has had its state for so many days."""
    key, message = Key(about, "w", kind, LAB), Message(("lab@example.org",), about, "text")
    entry = outbox_of(wiring).put(key, "mail", message, "draft", by="ann")
    assert entry is not None
    wiring.database.execute(
        "UPDATE outbox SET state = :state, changed = changed - :s WHERE number = :n",
        state=state,
        s=days * DAY_SECONDS,
        n=entry.number,
    )


@pytest.mark.parametrize(("keep", "gone"), [(1.0, 4), (70.0, 1)])
def test_old_messages_go_but_those_about_culprits(tmp_path: Path, keep: float, gone: int) -> None:
    wiring = wiring_in(tmp_path)
    old: list[tuple[str, Kind, State]] = [
        ("event", "event", "sent"),
        ("ended", "ended", "sent"),
        ("week", "weekly", "stopped"),
    ]
    kept: list[tuple[str, Kind, State]] = [
        ("culprit", "regression", "sent"),
        ("fix", "fixed", "sent"),
        ("failure", "failed", "sent"),
        ("refused", "event", "refused"),
        ("waits", "ended", "draft"),
    ]
    for one in (*old, *kept):
        put(wiring, *one, days=61)
    put(wiring, "recent", "event", "sent", 59)
    put(wiring, "older", "event", "sent", 71)
    put(wiring, "last", "event", "sent", 500)
    assert find_garbage(wiring, keep).messages == gone
    remove_garbage(wiring, keep)
    left = {entry.key.about for entry in outbox_of(wiring).entries()}
    wanted = {*(name for name, *_ in (*old, *kept)), "recent", "older", "last"}
    assert wanted - left == ({"event", "ended", "week", "older"} if gone == 4 else {"older"})
