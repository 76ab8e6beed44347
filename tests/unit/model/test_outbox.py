"""What becomes of a message after an attempt, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.model.outbox import (
    GIVE_UP_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Delivery,
    Key,
    Message,
    OutboxEntry,
    State,
    approved,
    claimed,
    delivered,
)

ENTRY = OutboxEntry(
    1, Key("c", "w", "regression", "lab"), "mail", Message(("a", "b"), "s", "t"), "approved", "", 0, 0, ""
)


@pytest.mark.parametrize(
    ("done", "state", "pending"),
    [
        (Delivery(("a", "b")), "sent", ()),
        (Delivery(("a",), {"b": "550"}), "sent", ()),
        (Delivery((), {"a": "550", "b": "550"}), "refused", ()),
        (Delivery(("a",), later="450 greylisted"), "approved", ("b",)),
        (Delivery((), {"a": "550"}, later="450"), "approved", ("b",)),
        (Delivery((), {"a": "550"}, unsure="lost"), "unsure", ("b",)),
        (Delivery(later="down"), "approved", ("a", "b")),
    ],
)
def test_the_state_after_an_attempt(done: Delivery, state: State, pending: tuple[str, ...]) -> None:
    after = delivered(claimed(ENTRY, "s", 10.0), done, 11.0)
    assert (after.state, after.pending, after.by) == (state, pending, "s")
    assert (after.sent is not None) == bool(done.accepted or done.unsure)


def test_pauses_grow_to_a_limit_and_days_later_it_is_given_up() -> None:
    entry, now, pauses = ENTRY, 0.0, []
    while entry.state == "approved":
        entry = delivered(claimed(entry, "s", now), Delivery(later="down"), now)
        pauses.append(entry.not_before - now)
        now = max(now, entry.not_before)
    assert pauses[:5] == [60.0, 240.0, 960.0, 3840.0, LONGEST_PAUSE_SECONDS]
    assert entry.state == "refused" and entry.refused == dict.fromkeys(("a", "b"), "given up: down")
    assert now >= GIVE_UP_SECONDS and len(pauses) < 40


def test_a_person_who_approves_again_asks_only_those_who_do_not_have_it() -> None:
    entry = replace(ENTRY, state="sent", accepted=("a",), refused={"b": "550"}, attempts=7, first_attempt=1.0)
    again = approved(entry, "ann", 5.0)
    assert (again.pending, again.by, again.attempts, again.first_attempt) == (("b",), "ann", 0, None)
