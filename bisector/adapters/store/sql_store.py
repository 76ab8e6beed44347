"""The store: bisections and their records in one SQLite file, append-only, through SQLAlchemy.

Every record is its own transaction, so that a killed process loses nothing that had ended. The schema's
version is kept in the file: a newer file is refused and left alone. Records written before a field existed
are read with the field's default. Until version 1 the facts of a record stood beside it, in the column `note`
(see `notes_v1`); such rows are read as they are, and no new ones are written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from bisector.adapters.store.notes_v1 import NO_NOTE, with_note
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import InfrastructureError, RequestError, nearest
from bisector.model.decisions import Conclusion, Decision
from bisector.model.records import Record
from bisector.ports import Stored
from bisector.schemas import serialization

SCHEMA = 2

_metadata = sa.MetaData()
_about = sa.Table(
    "about",
    _metadata,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("value", sa.String, nullable=False),
)
_bisections = sa.Table(
    "bisections",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("graph", sa.LargeBinary, nullable=False),
    sa.Column("conclusion", sa.Text),
)
_events = sa.Table(
    "events",
    _metadata,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("bisection", sa.String, sa.ForeignKey("bisections.id"), nullable=False, index=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)


class SqlStore:
    """ports.Store in a SQLite file; safe to use from several threads and processes."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises InfrastructureError: unusable, or of a newer version."""
        with os_errors_reported(
            f"the state folder {path.parent} cannot be made",
            cure="use another one: PERFBISECT_STATE_DIR, or state_dir in perfbisect.toml",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._engine = sa.create_engine(
            f"sqlite:///{path}",
            # Waits for another process's transaction; each of ours takes a few milliseconds.
            connect_args={"timeout": 30.0},
        )
        sa.event.listen(self._engine, "connect", _set_up)
        try:
            with self._engine.begin() as connection:
                found = 0
                if sa.inspect(connection).has_table(_about.name):
                    kept = sa.select(_about.c.value).where(_about.c.key == "schema")
                    found = int(connection.scalar(kept) or 0)
                if found < SCHEMA:  # a newer file is left as it is
                    _metadata.create_all(connection)
                    version = sqlite.insert(_about).values(key="schema", value=str(SCHEMA))
                    connection.execute(version.on_conflict_do_update(["key"], set_={"value": str(SCHEMA)}))
        except sa.exc.DatabaseError as error:
            raise _trouble(path, error) from error
        if found > SCHEMA:
            raise InfrastructureError(
                f"{path} was written by a newer perfbisect (state version {found}; known here: {SCHEMA})",
                cure="use that version, or another folder: PERFBISECT_STATE_DIR",
            )

    def create(self, stored: Stored) -> None:
        """Add a bisection. Raises RequestError if the id exists."""
        graph = zlib.compress(json.dumps(serialization.graph_to_json(stored.graph)).encode(), level=3)
        row = _bisections.insert().values(
            id=stored.id,
            created=stored.created,
            request=stored.request,
            status=stored.status,
            graph=graph,
            conclusion=None
            if stored.conclusion is None
            else json.dumps(serialization.to_json(stored.conclusion)),
        )
        try:
            self._write(row)
        except sa.exc.IntegrityError as error:
            raise RequestError(f"the bisection '{stored.id}' exists already") from error

    def load(self, bisection: str) -> Stored:
        """Return one bisection. Raises RequestError naming the nearest one that exists."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(_bisections).where(_bisections.c.id == bisection)).first()
            known = list(connection.scalars(sa.select(_bisections.c.id)))
        if row is None:
            raise RequestError(
                f"there is no bisection '{bisection}'{nearest(bisection, known)}",
                details=f"known: {', '.join(known) or 'none'}",
                cure="'perfbisect list' shows them",
            )
        return _stored(row)

    def list(self) -> Sequence[Stored]:
        """Return all bisections, newest first."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(_bisections).order_by(_bisections.c.created.desc())).all()
        return [_stored(row) for row in rows]

    def append(self, bisection: str, record: Record) -> int:
        """Add a record; return its sequence number."""
        return self._add(bisection, "record", serialization.to_json(record))

    def records(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Record]]:
        """Return (sequence number, record), oldest first; only those with a number above `after`."""
        return [
            (row.sequence, serialization.record_from(with_note(json.loads(row.body), row.note)))
            for row in self._rows(bisection, "record", after)
        ]

    def decide(self, bisection: str, decision: Decision) -> int:
        """Keep what the planner decided, with its reason; return its sequence number."""
        return self._add(bisection, "decision", serialization.to_json(decision))

    def decisions(self, bisection: str) -> Sequence[tuple[int, Decision]]:
        """Return (sequence number, decision), oldest first; numbers are shared with `records`."""
        return [
            (row.sequence, serialization.decision_from(json.loads(row.body)))
            for row in self._rows(bisection, "decision")
        ]

    def status(self, bisection: str) -> str:
        """Return the status alone, quickly. Raises RequestError for an unknown id."""
        with self._engine.connect() as connection:
            found = connection.scalar(sa.select(_bisections.c.status).where(_bisections.c.id == bisection))
        if found is None:
            raise _unknown(bisection)
        return str(found)

    def set_status(self, bisection: str, status: str, conclusion: Conclusion | None = None) -> None:
        """Change the status and, if given, the conclusion. Raises RequestError for an unknown id."""
        values: dict[str, Any] = {"status": status}
        if conclusion is not None:
            values["conclusion"] = json.dumps(serialization.to_json(conclusion))
        if not self._write(_bisections.update().where(_bisections.c.id == bisection).values(**values)):
            raise _unknown(bisection)

    def _add(self, bisection: str, kind: str, body: Mapping[str, Any]) -> int:
        row = _events.insert().values(bisection=bisection, kind=kind, body=json.dumps(body), note=NO_NOTE)
        try:
            return self._write(row)
        except sa.exc.IntegrityError as error:
            raise _unknown(bisection) from error

    def _write(self, statement: sa.Insert | sa.Update) -> int:
        """Execute in a transaction of its own; return the new row's number, or how many rows changed."""
        try:
            with self._engine.begin() as connection:
                result = connection.execute(statement)
                return int(result.lastrowid if isinstance(statement, sa.Insert) else result.rowcount)
        except sa.exc.OperationalError as error:
            raise _trouble(self._path, error) from error

    def _rows(self, bisection: str, kind: str, after: int = 0) -> Sequence[sa.Row[Any]]:
        wanted = sa.select(_events).where(
            _events.c.bisection == bisection, _events.c.kind == kind, _events.c.sequence > after
        )
        try:
            with self._engine.connect() as connection:
                return connection.execute(wanted.order_by(_events.c.sequence)).all()
        except sa.exc.DatabaseError as error:
            raise _trouble(self._path, error) from error


def _set_up(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's own connection
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")  # readers (status, report) never wait for the executor
    cursor.execute("PRAGMA synchronous=NORMAL")  # in WAL mode safe against kill -9, which is what we promise
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _unknown(bisection: str) -> RequestError:
    return RequestError(f"there is no bisection '{bisection}'", cure="'perfbisect list' shows them")


def _trouble(path: Path, error: sa.exc.DatabaseError) -> InfrastructureError:
    return InfrastructureError(
        f"the state file {path} cannot be used: {error.orig}",
        cure="check the disk's free space and the folder's permissions ('perfbisect doctor')",
    )


def _stored(row: sa.Row[Any]) -> Stored:
    return Stored(
        id=row.id,
        created=row.created,
        request=row.request,
        status=row.status,
        graph=serialization.graph_from(json.loads(zlib.decompress(row.graph))),
        conclusion=None
        if row.conclusion is None
        else serialization.conclusion_from(json.loads(row.conclusion)),
    )
