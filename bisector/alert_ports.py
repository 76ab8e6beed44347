"""The port of alerts: what became of each, and its history.

They lie in the database of the bisections (`bisector/adapters/store/alerts`): memory, SQLite or PostgreSQL.
All implementations pass `tests/contract/test_alert_contract.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from bisector.model.alerts import ALL, Alert, AlertFilter, HistoryEntry
from bisector.model.stored_bisection import Stored


class AlertStore(Protocol):
    """Alerts, each with a history that only grows."""

    def add(self, alert: Alert, entry: HistoryEntry) -> Alert:
        """Keep a new alert, created now, with the first entry of its history; return it as it is kept.

        Where one of its id is there already, nothing is changed, and that one is returned.
        """
        ...

    def load(self, identity: str) -> Alert:
        """Return one alert. Raises NotFound naming the nearest id."""
        ...

    def find(
        self, wanted: AlertFilter = ALL, *, after: str = "", limit: int | None = None
    ) -> Sequence[Alert]:
        """Return alerts, newest first. after: the id of the last one of the page before; limit: so many."""
        ...

    def count(self, wanted: AlertFilter = ALL) -> int:
        """Return how many there are."""
        ...

    def change(
        self,
        alert: Alert,
        entries: Sequence[HistoryEntry],
        *,
        begin: Stored | None = None,
        seen: Collection[Alert] = (),
    ) -> Alert | None:
        """Replace what is kept of an alert, and add to its history; return it as it is kept then.

        None, and nothing happens: it was changed since the revision that `alert` has, or one of `seen` was.
        begin: a bisection that is created in the same transaction. Raises RequestError: its id exists.
        """
        ...

    def history(self, identity: str) -> Sequence[HistoryEntry]:
        """Return what happened to an alert, oldest first; nothing for one that is not known."""
        ...
