"""The store: bisections and their records in one SQLite file, append-only.

Every record is its own transaction, so that a killed process loses nothing that had ended. A graph is stored
once, however many bisections search it; what lists show stands in columns of its own, so that they decode
nothing. The schema's version is kept in the file: a newer file is refused and left alone, an older one is
converted when it is opened (`migration`). Records written before a field existed are read with the field's
default; those of version 1 have facts beside them, in the column `note` (`notes_v1`).

The statements are standard SQL with named parameters; what only SQLite knows is in `sqlite_file`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bisector.adapters.store import migration
from bisector.adapters.store.notes_v1 import NO_NOTE, with_note
from bisector.adapters.store.sqlite_file import Constrained, Row, SqliteFile
from bisector.adapters.system.files import make_private_folder, os_errors_reported
from bisector.errors import InfrastructureError, RequestError, nearest
from bisector.model.decisions import Conclusion, Decision, Ending, Measure
from bisector.model.records import Record
from bisector.model.stored_bisection import Stored, Summary, summary_of
from bisector.ports import Progress
from bisector.schemas import serialization
from bisector.schemas.documents.json_reader import parse_json

SCHEMA = migration.SCHEMA

_MAX_NAMED = 20
"""Ids in a message."""
_NO_LIMIT = (1 << 63) - 1
"""The largest number that SQL databases count to."""


class SqlStore:
    """ports.Store in a SQLite file; safe to use from several threads and processes."""

    def __init__(
        self,
        path: Path,
        before_conversion: Callable[[], None] = lambda: None,
        progress: Progress = lambda text: None,
    ) -> None:
        """Open or make the file. Raises InfrastructureError: unusable, or of a newer version.

        before_conversion: called before a file of an earlier version is converted; it may raise.
        """
        with os_errors_reported(
            f"the state folder {path.parent} cannot be made",
            cure="use another one: PERFBISECT_STATE_DIR, or state_dir in perfbisect.toml",
        ):
            make_private_folder(path.parent)
        self._file = SqliteFile(path)
        with suppress(OSError):  # of another user, who lets us write to it
            path.chmod(0o600)
        migration.prepare(self._file, path, before_conversion, progress)

    def create(self, stored: Stored, events: Sequence[Record | Decision] = ()) -> None:
        """Add a bisection and what happened in it elsewhere, all or nothing.

        Raises RequestError if the id exists.
        """
        graph, summary = serialization.pack_graph(stored.graph), summary_of(stored, time.time())
        try:
            with self._file.transaction():
                migration.add(self._file, summary, graph, stored.request, _conclusion_text(stored.conclusion))
                for event in events:
                    kind = "decision" if isinstance(event, Measure | Conclusion) else "record"
                    self._add(stored.id, kind, serialization.to_json(event))
        except Constrained as error:
            raise RequestError(
                f"the bisection '{stored.id}' exists already", cure="'perfbisect list' shows it"
            ) from error

    def load(self, bisection: str) -> Stored:
        """Return one bisection. Raises RequestError naming the nearest one that exists."""
        row = self._row(
            "SELECT b.*, g.body FROM bisections AS b JOIN graphs AS g ON b.graph = g.checksum "
            "WHERE b.id = :id",
            bisection,
        )
        text = row["conclusion"]
        return Stored(
            id=row["id"],
            created=row["created"],
            request=row["request"],
            status=row["status"],
            graph=migration.decode_graph(row["body"]),
            conclusion=None if text is None else serialization.conclusion_from(_parse(text)),
        )

    def list(self, *, beginning: str = "", limit: int | None = None) -> Sequence[Summary]:
        """Return summaries, newest first. beginning: of the ids; limit: so many, by default all."""
        rows = self._file.execute(
            "SELECT id, created, changed, status, workload, good, bad, ending, culprits FROM bisections "
            "WHERE substr(id, 1, length(:beginning)) = :beginning ORDER BY created DESC LIMIT :limit",
            beginning=beginning,
            limit=_NO_LIMIT if limit is None else limit,
        )
        return [_summary(row) for row in rows]

    def append(self, bisection: str, record: Record) -> int:
        """Add a record; return its sequence number."""
        return self._add(bisection, "record", serialization.to_json(record))

    def records(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Record]]:
        """Return (sequence number, record), oldest first; only those with a number above `after`."""
        return [
            (row["sequence"], serialization.record_from(with_note(_parse(row["body"]), row["note"])))
            for row in self._events(bisection, "record", after)
        ]

    def decide(self, bisection: str, decision: Decision) -> int:
        """Keep what the planner decided, with its reason; return its sequence number."""
        return self._add(bisection, "decision", serialization.to_json(decision))

    def decisions(self, bisection: str) -> Sequence[tuple[int, Decision]]:
        """Return (sequence number, decision), oldest first; numbers are shared with `records`."""
        return [
            (row["sequence"], serialization.decision_from(_parse(row["body"])))
            for row in self._events(bisection, "decision")
        ]

    def status(self, bisection: str) -> str:
        """Return the status alone, quickly. Raises RequestError for an unknown id."""
        return str(self._row("SELECT status FROM bisections WHERE id = :id", bisection)["status"])

    def set_status(self, bisection: str, status: str, conclusion: Conclusion | None = None) -> None:
        """Change the status and, if given, the conclusion. Raises RequestError for an unknown id."""
        now = time.time()
        if conclusion is None:
            changed = self._file.execute(
                "UPDATE bisections SET status = :status, changed = :changed WHERE id = :id RETURNING id",
                id=bisection,
                status=status,
                changed=now,
            )
            if not changed:
                raise self._unknown(bisection)
            return
        summary = summary_of(replace(self.load(bisection), status=status, conclusion=conclusion), now)
        self._file.execute(
            "UPDATE bisections SET status = :status, changed = :changed, ending = :ending, "
            "culprits = :culprits, conclusion = :conclusion WHERE id = :id",
            id=bisection,
            status=status,
            changed=now,
            ending=conclusion.ending.value,
            culprits=" ".join(summary.culprits),
            conclusion=_conclusion_text(conclusion),
        )

    def remove(self, bisection: str) -> None:
        """Forget a bisection with all its records, and its graph if no other has it.

        Raises RequestError for an unknown id.
        """
        with self._file.transaction():
            graph = self._row("SELECT graph FROM bisections WHERE id = :id", bisection)["graph"]
            self._file.execute("DELETE FROM events WHERE bisection = :id", id=bisection)
            self._file.execute("DELETE FROM bisections WHERE id = :id", id=bisection)
            self._file.execute(
                "DELETE FROM graphs WHERE checksum = :graph "
                "AND NOT EXISTS (SELECT 1 FROM bisections WHERE graph = :graph)",
                graph=graph,
            )

    def give_back(self) -> int:
        """Give the space of what was removed back to the file system; return how many bytes."""
        return self._file.give_back()

    def _add(self, bisection: str, kind: str, body: Mapping[str, Any]) -> int:
        try:
            (row,) = self._file.execute(
                "INSERT INTO events (bisection, kind, body, note) VALUES (:bisection, :kind, :body, :note) "
                "RETURNING sequence",
                bisection=bisection,
                kind=kind,
                body=json.dumps(body),
                note=NO_NOTE,
            )
        except Constrained as error:
            raise self._unknown(bisection) from error
        return int(row["sequence"])

    def _events(self, bisection: str, kind: str, after: int = 0) -> Sequence[Row]:
        return self._file.execute(
            "SELECT sequence, body, note FROM events WHERE bisection = :bisection AND kind = :kind "
            "AND sequence > :after ORDER BY sequence",
            bisection=bisection,
            kind=kind,
            after=after,
        )

    def _row(self, statement: str, bisection: str) -> Row:
        """Return the one row of a bisection. Raises RequestError for an unknown id."""
        rows = self._file.execute(statement, id=bisection)
        if not rows:
            raise self._unknown(bisection)
        return rows[0]

    def _unknown(self, bisection: str) -> RequestError:
        known = [row["id"] for row in self._file.execute("SELECT id FROM bisections ORDER BY created DESC")]
        more = f" and {len(known) - _MAX_NAMED:,} more" if len(known) > _MAX_NAMED else ""
        return RequestError(
            f"there is no bisection '{bisection}'{nearest(bisection, known)}",
            details=f"known: {', '.join(known[:_MAX_NAMED]) or 'none'}{more}",
            cure="'perfbisect list' shows them",
        )


def _summary(row: Row) -> Summary:
    return Summary(
        id=row["id"],
        created=row["created"],
        changed=row["changed"],
        status=row["status"],
        workload=row["workload"],
        good=row["good"],
        bad=row["bad"],
        ending=None if row["ending"] is None else Ending(row["ending"]),
        culprits=tuple(row["culprits"].split()),
    )


def _conclusion_text(conclusion: Conclusion | None) -> str | None:
    return None if conclusion is None else json.dumps(serialization.to_json(conclusion))


def _parse(text: str) -> dict[str, Any]:
    """Read a stored JSON object. Raises InfrastructureError for a damaged one."""
    try:
        value = parse_json(text, "a record")
    except RequestError as error:
        raise _damaged(error.message) from error
    if not isinstance(value, dict):
        raise _damaged(f"not an object: {text[:80]}")
    return value


def _damaged(details: str) -> InfrastructureError:
    return InfrastructureError(
        "a stored record cannot be read",
        details=details,
        cure="the state file is damaged: 'perfbisect start' with the same request begins anew",
    )
