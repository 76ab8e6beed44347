"""Use cases of `perfbisect testbed`: what each testbed may be used for, and by whom.

The values that they return have the keys of docs/json.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bisector.app.execution.queue_state import read_queue
from bisector.app.testbeds.testbed_use import holders

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.leases import Reservation, TestbedState

_HOUR_SECONDS = 3600.0


def read(wiring: Wiring) -> dict[str, Any]:
    """Return the rows of `testbed list`, and the database's time ('now'; 0 where nothing is reserved)."""
    users = {
        testbed: e.summary.id
        for e in read_queue(wiring).entries
        for testbed in (*e.measures_on, *e.prepares_on)
    }
    states = {s.name: s for s in wiring.coordinator.testbeds()} if wiring.has_store else {}
    reservations = wiring.coordinator.reservations() if wiring.has_store else ()
    rows, held = [], holders(wiring)
    for spec in wiring.lab.testbeds:
        status = states.get(spec.name)
        reserved = next((r for r in reservations if r.testbed == spec.name), None)
        rows.append(
            {
                "name": spec.name,
                "state": status.state if status else "good",
                "reason": status.reason if status else "",
                "by": status.by if status else "",
                "since": status.since if status else None,
                **_reservation(reserved),
                "used_by": users.get(spec.name),
                "held_by": held.get(spec.name),
                "worker": spec.variables.worker,
            }
        )
    return {"testbeds": rows, "now": wiring.coordinator.now() if reservations else 0.0}


def change(wiring: Wiring, name: str, state: TestbedState, reason: str, by: str) -> dict[str, Any]:
    """Set the state of a testbed; 'good' ends the reservations of whoever asks, too. Raises RequestError.

    'ended': whether there were any; 'reserved': who has reserved it now, in the keys of `read`, or null.
    """
    spec, coordinator = wiring.lab.testbed(name), wiring.coordinator
    coordinator.set_testbed(spec.name, state, reason, by)
    ended = coordinator.unreserve(spec.name, by) if state == "good" else 0
    now = coordinator.now()
    others = [r for r in coordinator.reservations() if r.testbed == spec.name and r.start <= now]
    return {
        "name": spec.name,
        "state": state,
        "reason": reason,
        "by": by,
        "ended": ended > 0,
        "reserved": _reservation(others[0]) if others else None,
    }


def reserve(wiring: Wiring, name: str, hours: float, wait: float, who: str) -> dict[str, Any]:
    """Keep a testbed for `who`, from so many hours on. Raises RequestError: others have it then."""
    spec, coordinator = wiring.lab.testbed(name), wiring.coordinator
    begin = coordinator.now() + wait * _HOUR_SECONDS
    end = begin + hours * _HOUR_SECONDS
    made = coordinator.reserve(spec.name, who, end, begin if wait else None)
    return {"name": spec.name, **_reservation(made)}


def _reservation(one: Reservation | None) -> dict[str, Any]:
    return {
        "reserved_by": one.who if one else None,
        "reserved_from": one.start if one else None,
        "reserved_until": one.end if one else None,
    }
