"""Alerts without a database, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bisector.adapters.store.alerts.alert_refusals import unknown
from bisector.model.alerts import ALL, Alert, AlertFilter, HistoryEntry
from bisector.model.stored_bisection import Stored
from bisector.store_ports import Store


class MemoryAlerts:
    """alert_ports.AlertStore that forgets everything with its process."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        """store: of the bisections that alerts begin; now: seconds since the epoch."""
        self._store, self._now = store, now
        self._alerts: dict[str, Alert] = {}
        self._history: dict[str, list[HistoryEntry]] = {}
        self._lock = threading.RLock()

    def add(self, alert: Alert, entry: HistoryEntry) -> Alert:
        """Keep a new alert; where one of its id is there already, that one is returned."""
        with self._lock:
            if alert.id not in self._alerts:
                now = self._now()
                group = alert.group or alert.id
                self._alerts[alert.id] = replace(alert, group=group, created=now, changed=now, revision=1)
                self._add_entries(alert.id, [entry])
            return self._alerts[alert.id]

    def load(self, identity: str) -> Alert:
        """Return one alert. Raises NotFound."""
        if identity not in self._alerts:
            raise unknown(identity, list(self._alerts))
        return self._alerts[identity]

    def find(
        self, wanted: AlertFilter = ALL, *, after: str = "", limit: int | None = None
    ) -> Sequence[Alert]:
        """Return alerts, newest first. after: the id of the last one of the page before."""
        found = sorted(
            (alert for alert in self._alerts.values() if _is_wanted(alert, wanted)), key=_newest_first
        )
        if after:
            last = _newest_first(self.load(after))
            found = [alert for alert in found if _newest_first(alert) > last]
        return found[:limit]

    def count(self, wanted: AlertFilter = ALL) -> int:
        """Return how many there are."""
        return len(self.find(wanted))

    def change(
        self,
        alert: Alert,
        entries: Sequence[HistoryEntry],
        *,
        begin: Stored | None = None,
        seen: Collection[Alert] = (),
    ) -> Alert | None:
        """Replace what is kept; None where it or one of `seen` was changed since. Raises RequestError."""
        with self._lock:
            for one in (*seen, alert):
                if one.id not in self._alerts or self._alerts[one.id].revision != one.revision:
                    return None
            if begin is not None:
                self._store.create(begin)
            self._alerts[alert.id] = replace(alert, changed=self._now(), revision=alert.revision + 1)
            self._add_entries(alert.id, entries)
            return self._alerts[alert.id]

    def history(self, identity: str) -> Sequence[HistoryEntry]:
        """Return what happened to an alert, oldest first."""
        return tuple(self._history.get(identity, ()))

    def _add_entries(self, identity: str, entries: Sequence[HistoryEntry]) -> None:
        kept = self._history.setdefault(identity, [])
        for entry in entries:
            kept.append(replace(entry, at=self._now(), number=len(kept) + 1))


def _newest_first(alert: Alert) -> tuple[float, str]:
    return -alert.created, alert.id


def _is_wanted(alert: Alert, wanted: AlertFilter) -> bool:
    return (
        alert.id.startswith(wanted.beginning)
        and wanted.series in ("", alert.series)
        and wanted.workload in ("", alert.workload)
        and wanted.group in ("", alert.group)
        and (not wanted.states or alert.state in wanted.states)
        and (not wanted.findings or alert.finding in wanted.findings)
        and wanted.open in (None, alert.is_open)
        and alert.changed >= wanted.changed_since
    )
