"""The latest bisections and their true status, also after a process was killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bisector.app.execution.following import Executors
from bisector.model.series import is_of_night
from bisector.model.stored_bisection import ENDED

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.stored_bisection import Stored, Summary
    from bisector.store_ports import Store


def current_status(wiring: Wiring, stored: Stored | Summary) -> str:
    """Return the status; 'interrupted' for one that was running when its process was killed."""
    return current_statuses(wiring, [stored])[0]


def current_statuses(wiring: Wiring, found: Sequence[Stored | Summary]) -> list[str]:
    """Return the statuses of several, as `current_status`; who executes is asked once."""
    if all(one.status != "running" for one in found):
        return [one.status for one in found]
    executors = Executors(wiring.settings.state_dir, wiring.shared_coordinator)
    killed = {
        one.id for one in found if one.status == "running" and not executors.is_executed(one.id, one.status)
    }
    return ["interrupted" if one.id in killed else one.status for one in found]


def is_executed(wiring: Wiring, stored: Stored | Summary) -> bool:
    """Return whether a bisection is executed now, here or on another host."""
    executors = Executors(wiring.settings.state_dir, wiring.shared_coordinator)
    return executors.is_executed(stored.id, stored.status)


def is_ended_night(one: Summary) -> bool:
    """Return whether a bisection is a night of a series that has ended: lists have them only with 'all'."""
    return one.status in ENDED and is_of_night(one.id, one.owner)


def latest_searches(store: Store, limit: int, statuses: Sequence[str] = ()) -> Sequence[Summary]:
    """Return the latest bisections, so many at most, without nights of series that have ended.

    statuses: that they have; all by default.
    """
    asked = limit
    while True:
        found = store.list(limit=asked, statuses=statuses)
        wanted = [one for one in found if not is_ended_night(one)]
        if len(wanted) >= limit or len(found) < asked:
            return wanted[:limit]
        asked *= 4
