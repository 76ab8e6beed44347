"""The rows of `machine_hours`: how long an owner's bisections had testbeds, by hour."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.adapters.store.database import Database, read_clock
from bisector.model.machine_hours import WEEK_HOURS, hour_of


def add(database: Database, owner: str, seconds: float) -> None:
    """Count seconds in the present hour, and forget what is older than a week."""

    def work() -> None:  # a transaction: where a connection breaks, nothing is counted twice
        hour = _hour(database)
        database.execute(
            "INSERT INTO machine_hours (owner, hour, seconds) VALUES (:owner, :hour, :seconds) "
            "ON CONFLICT (owner, hour) DO UPDATE SET seconds = machine_hours.seconds + excluded.seconds",
            owner=owner,
            hour=hour,
            seconds=seconds,
        )
        database.execute(
            "DELETE FROM machine_hours WHERE owner = :owner AND hour <= :old",
            owner=owner,
            old=hour - WEEK_HOURS,
        )

    database.transact(work)


def of_last_week(database: Database, owner: str) -> Mapping[int, float]:
    """Return the seconds of the last week, by hour since the epoch."""
    rows = database.execute(
        "SELECT hour, seconds FROM machine_hours WHERE owner = :owner AND hour > :old",
        owner=owner,
        old=_hour(database) - WEEK_HOURS,
    )
    return {row["hour"]: row["seconds"] for row in rows}


def _hour(database: Database) -> int:
    return hour_of(read_clock(database))
