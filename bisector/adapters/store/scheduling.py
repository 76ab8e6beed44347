"""The rows of `scheduling`: a bisection's priority, owner and last action, and how far it is.

`list` and `queue` read them instead of records. They are written in the transactions of what they tell.
"""

from __future__ import annotations

import json

from bisector.adapters.store.database import Database, Row
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.live_boots import live_after
from bisector.model.records import Booted, Left, Record, RunFailed
from bisector.model.stored_bisection import Action, Progress, Stored, left_of, testbeds_of

COLUMNS = (
    "s.priority, s.owner, s.testbeds, s.action, s.action_by, s.action_why, s.action_at, "
    "s.boots, s.live, s.left_seconds, s.decided, s.measured, s.building"
)
JOIN = "JOIN scheduling s ON s.bisection = b.id"


def add(database: Database, stored: Stored) -> None:
    """Write the row of a new bisection."""
    action = stored.action
    database.execute(
        "INSERT INTO scheduling (bisection, priority, owner, testbeds, action, action_by, action_why, "
        "action_at, boots, live) "
        "VALUES (:id, :priority, :owner, :testbeds, :action, :by, :why, :at, 0, '{}')",
        id=stored.id,
        priority=stored.priority,
        owner=stored.owner,
        testbeds=json.dumps(testbeds_of(stored.request)),
        action=action.what if action else None,
        by=action.by if action else None,
        why=action.why if action else None,
        at=action.at if action else None,
    )


def take_note(database: Database, bisection: str, event: Record | Decision) -> None:
    """Let the row show an event. The bisection is locked, or nobody else knows it yet."""
    match event:
        case Measure() | Conclusion():
            database.execute(
                "UPDATE scheduling SET left_seconds = :left, decided = seconds_now(), building = 0 "
                "WHERE bisection = :id",
                id=bisection,
                left=left_of(event),
            )
        case Booted() | Left() | RunFailed():
            columns = "SELECT live, measured FROM scheduling WHERE bisection = :id"
            (row,) = database.execute(columns, id=bisection)
            before = json.loads(row["live"])
            live = live_after(before, event)
            if live is not before:
                new = [event.testbed] if isinstance(event, Booted) else []
                database.execute(
                    "UPDATE scheduling SET live = :live, boots = boots + :new, measured = :measured "
                    "WHERE bisection = :id",
                    id=bisection,
                    live=json.dumps(live),
                    new=len(new),
                    measured=json.dumps(sorted({*json.loads(row["measured"]), *new})),
                )


def set_action(database: Database, bisection: str, action: Action, priority: int | None = None) -> None:
    """Write down what somebody did, now, and a new priority if one is given."""
    database.execute(
        "UPDATE scheduling SET action = :what, action_by = :by, action_why = :why, "
        "action_at = seconds_now(), priority = coalesce(:priority, priority) WHERE bisection = :id",
        id=bisection,
        what=action.what,
        by=action.by,
        why=action.why,
        priority=priority,
    )


def action_of(row: Row) -> Action | None:
    """Return the last action of a row."""
    if row["action"] is None:
        return None
    return Action(row["action"], row["action_by"], row["action_why"], row["action_at"])


def progress_of(row: Row) -> Progress:
    """Return how far a row says that a bisection is."""
    live = tuple(sorted(set(json.loads(row["live"]).values())))
    measured = tuple(json.loads(row["measured"]))
    return Progress(row["boots"], live, row["left_seconds"], row["decided"], measured, bool(row["building"]))


def set_building(database: Database, bisection: str, building: bool) -> None:
    """Write down whether a kernel is built for a bisection that has left its testbed."""
    database.execute(
        "UPDATE scheduling SET building = :building WHERE bisection = :id",
        id=bisection,
        building=int(building),
    )
