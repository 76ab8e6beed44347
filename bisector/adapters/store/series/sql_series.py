"""Nightly series in a SQL database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from bisector.adapters.store.database import Constrained, Database, Row, Value, read_clock
from bisector.adapters.store.series.series_refusals import name_taken, unknown_series
from bisector.model.decisions import Interval
from bisector.model.series import Night, NightState, NightVerdict, Point, Series, SeriesState

_SERIES = tuple(field.name for field in fields(Series))
_NIGHT = tuple(field.name for field in fields(Night))
_POINT = ("series", *(field.name for field in fields(Point)))
_SET_BY_OTHERS = ("series", "number", "new_level")
"""Columns that are not written with a night."""


def _select(names: Iterable[str], rest: str) -> str:
    """Return a statement; columns are quoted, since 'commit' and 'values' are words of SQL."""
    return " ".join(("SELECT", ", ".join(f'"{name}"' for name in names), rest))


def _insert(table: str, names: Iterable[str]) -> str:
    columns, values = zip(*((f'"{name}"', f":{name}") for name in names), strict=True)
    return " ".join(("INSERT INTO", table, "(", ", ".join(columns), ") VALUES (", ", ".join(values), ")"))


_ALL_SERIES = _select(_SERIES, "FROM series ORDER BY name")
_NIGHTS = _select(_NIGHT, "FROM nights WHERE series = :name ORDER BY place, number")
_OPEN = _select(
    _NIGHT,
    "FROM nights WHERE state IN ('due', 'running') OR (state = 'measured' AND verdict IS NULL) "
    "OR (confirmation <> '' AND confirmed IS NULL) ORDER BY series, place, number",
)
_POINTS = _select(_POINT, "FROM points WHERE series = :name ORDER BY night, boot")
_CHANGE = " ".join(
    (
        "UPDATE nights SET",
        ", ".join(f'"{name}" = :{name}' for name in _NIGHT if name not in _SET_BY_OTHERS),
        "WHERE series = :series AND number = :number AND",
    )
)


class SqlSeries:
    """series_ports.SeriesStore in the database of the bisections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, series: Series) -> Series:
        """Add a series, created now; return it. Raises RequestError: the name is taken."""
        added = replace(series, created=read_clock(self._database))
        try:
            self._database.transact(
                lambda: self._database.execute(_insert("series", _SERIES), **asdict(added))
            )
        except Constrained as error:
            raise name_taken(series.name) from error
        return added

    def all(self) -> Sequence[Series]:
        """Return all series, by name."""
        rows = self._database.execute(_ALL_SERIES)
        return [Series(**{name: row[name] for name in _SERIES}) for row in rows]

    def load(self, name: str) -> Series:
        """Return one series. Raises NotFound naming the nearest."""
        known = {series.name: series for series in self.all()}
        if name not in known:
            raise unknown_series(name, known)
        return known[name]

    def set_state(self, name: str, state: SeriesState, why: str = "") -> None:
        """Let a series be measured or rest. Raises NotFound."""
        statement = "UPDATE series SET state = :state, why = :why WHERE name = :name RETURNING name"
        if not self._database.execute(statement, name=name, state=state, why=why):
            self.load(name)

    def remove(self, name: str) -> None:
        """Forget a series with its nights and points. Raises NotFound."""

        def work() -> bool:
            self._database.execute("DELETE FROM points WHERE series = :name", name=name)
            self._database.execute("DELETE FROM nights WHERE series = :name", name=name)
            return bool(
                self._database.execute("DELETE FROM series WHERE name = :name RETURNING 1", name=name)
            )

        if not self._database.transact(work):
            self.load(name)

    def add_night(self, night: Night) -> bool:
        """Add a night; return False where there is one of its number, or the series is gone."""
        statement = _insert("nights", _NIGHT)
        try:
            self._database.transact(lambda: self._database.execute(statement, **_night_values(night)))
        except Constrained:
            return False
        return True

    def nights(self, name: str) -> Sequence[Night]:
        """Return the nights of a series by place, none of one that is not known."""
        rows = self._database.execute(_NIGHTS, name=name)
        return [_night(row) for row in rows]

    def set_commit(self, night: Night) -> bool:
        """Write `commit` and `note` of a night that is due and has no commit; return whether that was so."""
        condition = "state = 'due' AND \"commit\" = ''"
        return self._database.transact(lambda: self._change(night, condition))

    def change_night(self, night: Night, expected: NightState) -> bool:
        """Write a night as it is now, if its state was `expected`; return whether it was."""
        return self._database.transact(lambda: self._change(night, "state = :expected", expected=expected))

    def end_night(self, night: Night, points: Sequence[Point]) -> bool:
        """The same for a night that ran and has ended, with its points: all of it, once."""

        def work() -> bool:
            if not self._change(night, "state = 'running'"):
                return False
            for point in points:
                self._database.execute(_insert("points", _POINT), **_point_values(night.series, point))
            return True

        return self._database.transact(work)

    def set_verdict(self, night: Night, begins: int | None = None) -> bool:
        """Write the `verdict` of a measured night that has none; return whether it had none."""
        return self._change_level(night, "state = 'measured' AND verdict IS NULL", begins)

    def open_nights(self) -> Sequence[Night]:
        """Return the nights of all series for which something is left to do, by series and place."""
        return [_night(row) for row in self._database.execute(_OPEN)]

    def begin_confirmation(self, night: Night) -> bool:
        """Write `confirmation` and `verdict` of a night without the first; return whether it had none."""
        return self._database.transact(lambda: self._change(night, "confirmation = ''"))

    def end_confirmation(self, night: Night, begins: int | None) -> bool:
        """Write the end of a night's confirmation, if it had none; return whether that was so."""
        return self._change_level(night, "confirmed IS NULL", begins)

    def points(self, name: str) -> Sequence[Point]:
        """Return all points of a series, by night and boot."""
        rows = self._database.execute(_POINTS, name=name)
        return [
            Point(
                night=row["night"],
                boot=row["boot"],
                commit=row["commit"],
                testbed=row["testbed"],
                reference=bool(row["reference"]),
                values=tuple(json.loads(row["values"])),
                at=row["at"],
            )
            for row in rows
        ]

    def _change_level(self, night: Night, condition: str, begins: int | None) -> bool:
        """Write a night where the condition holds, and with it where a new level begins."""

        def work() -> bool:
            if not self._change(night, condition):
                return False
            if begins is not None:
                self._database.execute(
                    "UPDATE nights SET new_level = 1 WHERE series = :series AND number = :number",
                    series=night.series,
                    number=begins,
                )
            return True

        return self._database.transact(work)

    def _change(self, night: Night, condition: str, **more: Value) -> bool:
        values = {name: value for name, value in _night_values(night).items() if name != "new_level"}
        rows = self._database.execute(f"{_CHANGE} {condition} RETURNING 1", **values, **more)
        return bool(rows)


def _night_values(night: Night) -> Mapping[str, Value]:
    values: dict[str, Any] = {name: getattr(night, name) for name in _NIGHT}
    values["verdict"] = None if night.verdict is None else json.dumps(asdict(night.verdict))
    values["new_level"] = int(night.new_level)
    return values


def _night(row: Row) -> Night:
    values = {name: row[name] for name in _NIGHT}
    values["verdict"] = None if values["verdict"] is None else _verdict(json.loads(values["verdict"]))
    values["new_level"] = bool(values["new_level"])
    return Night(**values)


def _verdict(values: dict[str, Any]) -> NightVerdict:
    intervals = {
        name: None if values[name] is None else Interval(**values[name]) for name in ("effect", "reference")
    }
    return NightVerdict(**{**values, **intervals})


def _point_values(series: str, point: Point) -> Mapping[str, Value]:
    return {
        "series": series,
        **{name: getattr(point, name) for name in ("night", "boot", "commit", "testbed", "at")},
        "reference": int(point.reference),
        "values": json.dumps(list(point.values)),
    }
