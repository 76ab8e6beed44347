"""References to ended bisections: open alerts, nights that go on, messages that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bisector.model.alerts import AlertFilter
from bisector.model.outbox import OutboxEntry, State

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

_WAITING: tuple[State, ...] = ("waiting", "approved", "sending", "unsure")
"""Messages that may still go out: who reads one looks at its bisection."""


@dataclass(frozen=True, slots=True)
class Reference:
    """what: refers to a bisection, for people; cure: how that is ended."""

    what: str
    cure: str


def find_references(wiring: Wiring) -> Mapping[str, Reference]:
    """Return bisection -> who refers to it."""
    from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
    from bisector.app.mail.delivery import outbox_of
    from bisector.app.series.series_store import series_store

    found: dict[str, Reference] = {}
    if not wiring.has_store:
        return found
    for entry in outbox_of(wiring).entries([*_WAITING, "draft"]):
        if entry.bisection and _waits(entry):
            number = entry.number
            cure = f"perfbisect mail approve {number}, or mail stop {number}; mail preview {number} shows it"
            found[entry.bisection] = Reference(f"message {number} of the outbox ({entry.state})", cure)
    for night in series_store(wiring).open_nights():
        what = f"night {night.number} of the series '{night.series}', which is not judged yet"
        cure = "wait: a worker does that; perfbisect series show " + night.series
        found.update(
            dict.fromkeys(filter(None, (night.bisection, night.confirmation)), Reference(what, cure))
        )
    for alert in SqlAlerts(wiring.database).find(AlertFilter(open=True)):
        if alert.bisection:
            cure = f"perfbisect alert set {alert.id} --state fixed, wontfix or invalid: that closes it"
            found[alert.bisection] = Reference(f"alert {alert.id} ({alert.state})", cure)
    return found


def _waits(entry: OutboxEntry) -> bool:
    """Return whether a message may go out: of drafts only those that wait for the end of a bisection."""
    return entry.state != "draft" or entry.key.kind == "ended"
