"""Alerts in a SQL database, with their histories.

What filters ask for stands in columns of its own: a page of a list reads the rows that it shows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from bisector.adapters.store.alerts.alert_refusals import unknown
from bisector.adapters.store.database import NO_LIMIT, Constrained, Database, Row, Value, read_clock
from bisector.adapters.store.sql_store import SqlStore
from bisector.errors import RequestError
from bisector.model.alerts import ALL, Alert, AlertFilter, HistoryEntry
from bisector.model.decisions import Interval
from bisector.model.stored_bisection import Stored

_TEXTS = (
    "series",
    "workload",
    "metric",
    "testbed",
    "repo",
    "last_good",
    "first_bad",
    "tip",
    "direction",
    "unit",
    "finding",
    "triage",
    "why",
    "bisection",
    "subject",
    "back_since",
    "duplicate_of",
    "assignee",
)
"""Columns that are named as what they hold."""
_DERIVED = ("low", "estimate", "high", "state", "is_open", "culprits", "cause")


class SqlAlerts:
    """alert_ports.AlertStore in the database of the bisections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, alert: Alert, entry: HistoryEntry) -> Alert:
        """Keep a new alert, created now; where one of its id is there already, that one is returned."""
        names = (*_TEXTS, *_DERIVED)

        def work() -> Alert:
            added = self._database.execute(
                f"INSERT INTO alerts (id, created, changed, revision, {', '.join(names)}) "  # noqa: S608
                f"VALUES (:id, :now, :now, 1, {', '.join(f':{name}' for name in names)}) "
                "ON CONFLICT (id) DO NOTHING RETURNING id",
                id=alert.id,
                now=read_clock(self._database),
                **_columns(alert),
            )
            if added:
                self._add_entry(alert.id, entry)
            return self.load(alert.id)

        return self._database.transact(work)

    def load(self, identity: str) -> Alert:
        """Return one alert. Raises NotFound."""
        rows = self._database.execute("SELECT * FROM alerts WHERE id = :id", id=identity)
        if not rows:
            known = self._database.execute("SELECT id FROM alerts ORDER BY created DESC")
            raise unknown(identity, [row["id"] for row in known])
        return _alert(rows[0])

    def find(
        self, wanted: AlertFilter = ALL, *, after: str = "", limit: int | None = None
    ) -> Sequence[Alert]:
        """Return alerts, newest first. after: the id of the last one of the page before."""
        where, values = _condition(wanted)
        if after:
            last = self.load(after)
            where += " AND (created < :last_created OR (created = :last_created AND id > :last_id))"
            values |= {"last_created": last.created, "last_id": last.id}
        rows = self._database.execute(
            f"SELECT * FROM alerts WHERE {where} ORDER BY created DESC, id LIMIT :limit",  # noqa: S608
            limit=NO_LIMIT if limit is None else limit,
            **values,
        )
        return [_alert(row) for row in rows]

    def count(self, wanted: AlertFilter = ALL) -> int:
        """Return how many there are."""
        where, values = _condition(wanted)
        (row,) = self._database.execute(f"SELECT count(*) AS n FROM alerts WHERE {where}", **values)  # noqa: S608
        return int(row["n"])

    def change(
        self,
        alert: Alert,
        entries: Sequence[HistoryEntry],
        *,
        begin: Stored | None = None,
        seen: Collection[Alert] = (),
    ) -> Alert | None:
        """Replace what is kept; None where it or one of `seen` was changed since. Raises RequestError."""
        expected = {one.id: one.revision for one in (*seen, alert)}
        create = None if begin is None else SqlStore(self._database).creation(begin)
        assigned = ", ".join(f"{name} = :{name}" for name in (*_TEXTS, *_DERIVED))

        def work() -> Alert | None:
            for identity in sorted(expected):  # always in this order: two that do this never wait in a circle
                rows = self._database.execute(
                    "SELECT revision FROM alerts WHERE id = :id FOR UPDATE", id=identity
                )
                if not rows or rows[0]["revision"] != expected[identity]:
                    return None
            if create is not None:
                create()
            self._database.execute(
                f"UPDATE alerts SET {assigned}, changed = seconds_now(), revision = revision + 1 "  # noqa: S608
                "WHERE id = :id",
                id=alert.id,
                **_columns(alert),
            )
            for entry in entries:
                self._add_entry(alert.id, entry)
            return self.load(alert.id)

        try:
            return self._database.transact(work)
        except Constrained as error:
            assert begin is not None, "nothing else of it must be new"
            raise RequestError(
                f"the bisection '{begin.id}' exists already", cure="'perfbisect list' shows it"
            ) from error

    def history(self, identity: str) -> Sequence[HistoryEntry]:
        """Return what happened to an alert, oldest first."""
        rows = self._database.execute(
            "SELECT number, at, who, what, why FROM alert_history WHERE alert = :id ORDER BY number",
            id=identity,
        )
        return [HistoryEntry(row["who"], row["what"], row["why"], row["at"], row["number"]) for row in rows]

    def _add_entry(self, identity: str, entry: HistoryEntry) -> None:
        self._database.execute(
            "INSERT INTO alert_history (alert, number, at, who, what, why) "
            "SELECT :alert, coalesce(max(number), 0) + 1, seconds_now(), :who, :what, :why "
            "FROM alert_history WHERE alert = :alert",
            alert=identity,
            who=entry.who,
            what=entry.what,
            why=entry.why,
        )


def _columns(alert: Alert) -> dict[str, Value]:
    """Return the values of _TEXTS and _DERIVED."""
    return {
        **{name: getattr(alert, name) or "" for name in _TEXTS},
        "low": alert.effect.low,
        "estimate": alert.effect.estimate,
        "high": alert.effect.high,
        "state": alert.state,
        "is_open": int(alert.is_open),
        "culprits": json.dumps(alert.culprits),
        "cause": alert.group or alert.id,
    }


def _alert(row: Row) -> Alert:
    alert = Alert(
        id=row["id"],
        effect=Interval(row["low"], row["estimate"], row["high"]),
        culprits=tuple(json.loads(row["culprits"])),
        group=row["cause"],
        created=row["created"],
        changed=row["changed"],
        revision=row["revision"],
        **{name: row[name] for name in _TEXTS},
    )
    return replace(alert, triage=alert.triage or None)


def _condition(wanted: AlertFilter) -> tuple[str, dict[str, Value]]:
    """Return the condition of a filter, with its values."""
    parts, values = ["changed >= :since"], dict[str, Value](since=wanted.changed_since)
    if wanted.beginning:
        parts.append("substr(id, 1, length(:beginning)) = :beginning")
        values["beginning"] = wanted.beginning
    equal = {"series": wanted.series, "workload": wanted.workload, "cause": wanted.group}
    for column, value in equal.items():
        if value:
            parts.append(f"{column} = :{column}")
            values[column] = value
    for column, words in (("state", wanted.states), ("finding", wanted.findings)):
        if words:
            names = {f"{column}_{number}": word for number, word in enumerate(words)}
            parts.append(f"{column} IN ({', '.join(f':{name}' for name in names)})")
            values |= names
    if wanted.open is not None:
        parts.append("is_open = :open")
        values["open"] = int(wanted.open)
    return " AND ".join(parts), values
