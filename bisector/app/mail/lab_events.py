"""Events of alerts and testbeds for the lab's webhook: one signed POST for each new state."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bisector.app.mail.delivery import outbox_of
from bisector.model.alerts import STATES, TRIAGES, AlertFilter
from bisector.model.outbox import Key, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bisector.app.wiring import Wiring
    from bisector.model.alerts import Alert, HistoryEntry

BY = "perfbisect"
_TOLD = (
    *("id", "series", "workload", "metric", "testbed", "direction", "unit", "last_good", "first_bad"),
    "duplicate_of",
)
"""What an event reports of an alert as it is."""


def offer_changes(wiring: Wiring, since: float) -> float:
    """Put what became of alerts and testbeds since a time into the outbox, once; return until when."""
    hook = wiring.settings.webhook
    assert hook is not None and hook.url is not None, "asked for where there is one"
    outbox, until = outbox_of(wiring), since
    for about, workload, body in (*_of_alerts(wiring, since), *_of_testbeds(wiring, since)):
        key = Key(about, workload, "event", hook.url)
        message = Message((hook.url,), str(body["event"]), json.dumps(body, ensure_ascii=False))
        outbox.put(key, "webhook", message, "approved", by=BY, bisection=str(body.get("bisection") or ""))
        until = max(until, float(body["at"]))
    return until


def _of_alerts(wiring: Wiring, since: float) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the key and the values of each state that an alert got.

    Notes and assignments are no states, nor is what the program finds out of an alert that is closed.
    """
    from bisector.app.alerts.alert_context import open_alerts

    alerts = open_alerts(wiring)
    for alert in reversed(alerts.find(AlertFilter(changed_since=since))):
        closed = False
        for entry in alerts.history(alert.id):
            state = _state_of(entry)
            if state in TRIAGES:
                closed = state != "acknowledged"
            elif state not in STATES or closed:
                continue
            if entry.at >= since:
                values = _alert_values(alert, entry, state)
                yield f"alert {alert.id} entry {entry.number}", alert.workload, values


def _state_of(entry: HistoryEntry) -> str:
    """Return the state that an entry tells of; a duplicate's names the other alert, too."""
    return "duplicate" if entry.what.startswith("duplicate of ") else entry.what


def _alert_values(alert: Alert, entry: HistoryEntry, state: str) -> dict[str, Any]:
    return {
        "event": "alert.changed",
        "state": state,
        "by": entry.who,
        "why": entry.why,
        "at": entry.at,
        "alert": {name: getattr(alert, name) for name in _TOLD},
        "effect": asdict(alert.effect),
        "bisection": alert.bisection or None,
        "culprits": list(alert.culprits),
    }


def _of_testbeds(wiring: Wiring, since: float) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for one in wiring.coordinator.testbeds():
        if one.since >= since:
            body = {
                "event": "testbed.changed",
                "testbed": one.name,
                "state": one.state,
                "by": one.by,
                "why": one.reason,
                "at": one.since,
            }
            yield f"testbed {one.name} since {one.since!r}", "", body
