"""The store: bisections and their records in a SQL database, append-only.

Every record is its own transaction, so that a killed process loses nothing that had ended. A graph is stored
once, however many bisections search it. Lists read columns of their own and decode nothing. Events are
numbered within their bisection, under the lock of its row: a reader that asks for new ones misses none.
Records written before a field existed are read with the field's default; those of version 1 have facts beside
them, in the column `note` (`notes_v1`).
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from bisector.adapters.store import scheduling
from bisector.adapters.store.database import NO_LIMIT, Constrained, Database, Row
from bisector.adapters.store.notes_v1 import NO_NOTE
from bisector.adapters.store.rows import (
    conclusion_text,
    decode_graph,
    numbered_decision,
    numbered_record,
    parse_object,
    read_summary,
    read_time,
)
from bisector.adapters.store.sql_trials import SqlTrials, check_lease
from bisector.errors import NotFound, RecordsUnusable, RequestError, nearest
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.leases import Lease
from bisector.model.records import Record
from bisector.model.stored_bisection import Action, Stored, Summary, summary_of
from bisector.schemas import serialization

_MAX_NAMED = 20
"""Most ids in a message."""


class SqlStore(SqlTrials):
    """store_ports.Store in a SQL database; safe to use from several threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lease: Lease | None = None

    def fenced(self, lease: Lease) -> SqlStore:
        """Return this store for the holder of a lease: it refuses to write once the lease is lost."""
        view = copy.copy(self)
        view._lease = lease
        return view

    def create(self, stored: Stored, events: Sequence[Record | Decision] = ()) -> None:
        """Add a whole bisection, with events from elsewhere. Raises RequestError: the id exists."""
        try:
            self._database.transact(self.creation(stored, events))
        except Constrained as error:
            raise RequestError(
                f"the bisection '{stored.id}' exists already", cure="'perfbisect list' shows it"
            ) from error

    def creation(self, stored: Stored, events: Sequence[Record | Decision] = ()) -> Callable[[], None]:
        """Return a function that adds it within a transaction; it raises Constrained where the id exists."""
        graph, conclusion = serialization.pack_graph(stored.graph), conclusion_text(stored.conclusion)
        bodies = [json.dumps(serialization.to_json(event)) for event in events]
        summary = summary_of(stored, 0.0)
        checksum = hashlib.sha256(graph).hexdigest()

        def work() -> None:
            self._database.execute(
                "INSERT INTO graphs (checksum, body) VALUES (:checksum, :body) "
                "ON CONFLICT (checksum) DO NOTHING",
                checksum=checksum,
                body=graph,
            )
            self._database.execute(
                "INSERT INTO bisections (id, created, changed, status, workload, good, bad, ending, "
                "culprits, graph, request, conclusion) VALUES (:id, :created, seconds_now(), :status, "
                ":workload, :good, :bad, :ending, :culprits, :graph, :request, :conclusion)",
                id=summary.id,
                created=summary.created,
                status=summary.status,
                workload=summary.workload,
                good=summary.good,
                bad=summary.bad,
                ending=summary.ending.value if summary.ending is not None else None,
                culprits=" ".join(summary.culprits),
                graph=checksum,
                request=stored.request,
                conclusion=conclusion,
            )
            scheduling.add(self._database, stored)
            for event, body in zip(events, bodies, strict=True):
                self._insert(stored.id, event, body)

        return work

    def load(self, bisection: str) -> Stored:
        """Return one bisection. Raises RequestError naming the nearest one that exists."""
        row = self._row(
            f"SELECT b.*, g.body, {scheduling.COLUMNS} FROM bisections b "  # noqa: S608
            f"JOIN graphs g ON b.graph = g.checksum {scheduling.JOIN} WHERE b.id = :id",
            bisection,
        )
        text = row["conclusion"]
        return Stored(
            id=row["id"],
            created=read_time(row["created"], row["id"]),
            request=row["request"],
            status=row["status"],
            graph=decode_graph(row["body"]),
            conclusion=None if text is None else serialization.conclusion_from(parse_object(text)),
            priority=row["priority"],
            owner=row["owner"],
            action=scheduling.action_of(row),
        )

    def list(
        self, beginning: str = "", limit: int | None = None, statuses: Collection[str] = (), since: float = 0
    ) -> Sequence[Summary]:
        """Return summaries, newest first. beginning: of ids; limit: at most so many; since: last change."""
        # A list of parameters lets the database use the index of statuses; executors ask five times a second.
        wanted = {f"status_{number}": status for number, status in enumerate(statuses)}
        among = f"AND b.status IN ({', '.join(f':{name}' for name in wanted)}) " if wanted else ""
        rows = self._database.execute(
            "SELECT b.id, b.created, b.changed, b.status, b.workload, b.good, b.bad, b.ending, b.culprits, "  # noqa: S608
            f"{scheduling.COLUMNS} FROM bisections b {scheduling.JOIN} "
            f"WHERE substr(b.id, 1, length(:beginning)) = :beginning AND b.changed >= :since {among}"
            "ORDER BY b.created DESC LIMIT :limit",
            beginning=beginning,
            since=since,
            limit=NO_LIMIT if limit is None else limit,
            **wanted,
        )
        return [read_summary(row) for row in rows]

    def append(self, bisection: str, record: Record) -> int:
        """Add a record; return its sequence number."""
        return self._add(bisection, record)

    def records(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Record]]:
        """Return (sequence number, record), oldest first; only those with a number above `after`."""
        return [numbered_record(row) for row in self._events(bisection, "record", after)]

    def decide(self, bisection: str, decision: Decision) -> int:
        """Add a decision of the planner; return its sequence number."""
        return self._add(bisection, decision)

    def decisions(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Decision]]:
        """Return (sequence number, decision) as `records` does; numbers are shared with it."""
        return [numbered_decision(row) for row in self._events(bisection, "decision", after)]

    def seconds_spent(self, bisection: str) -> Mapping[str, float]:
        """Return the seconds of all records that have any, by type; four times as fast as `records`."""
        spent: dict[str, float] = {}
        for row in self._events(bisection, "record"):
            body = parse_object(row["body"])
            if "seconds" in body:
                spent[body["type"]] = spent.get(body["type"], 0.0) + float(body["seconds"])
        return spent

    def status(self, bisection: str) -> str:
        """Return only the status, which is fast. Raises RequestError for an unknown id."""
        return str(self._row("SELECT status FROM bisections WHERE id = :id", bisection)["status"])

    def set_status(
        self,
        bisection: str,
        status: str,
        conclusion: Conclusion | None = None,
        *,
        expected: Collection[str] = (),
        action: Action | None = None,
    ) -> bool:
        """Change the status if it is an expected one; return whether it was. Raises RequestError."""

        def work() -> bool:
            self._lock(bisection)
            if expected and self.status(bisection) not in expected:
                return False
            self._database.execute(
                "UPDATE bisections SET status = :status, changed = seconds_now() WHERE id = :id",
                id=bisection,
                status=status,
            )
            if action is not None:
                scheduling.set_action(self._database, bisection, action)
            if conclusion is None:
                return True
            ended = replace(self.load(bisection), status=status, conclusion=conclusion)
            self._database.execute(
                "UPDATE bisections SET ending = :ending, culprits = :culprits, conclusion = :conclusion "
                "WHERE id = :id",
                id=bisection,
                ending=conclusion.ending.value,
                culprits=" ".join(summary_of(ended, 0.0).culprits),
                conclusion=conclusion_text(conclusion),
            )
            return True

        return self._database.transact(work)

    def set_priority(self, bisection: str, priority: int, action: Action) -> None:
        """Change the priority. Raises RequestError for an unknown id."""

        def work() -> None:
            self._lock(bisection)
            scheduling.set_action(self._database, bisection, action, priority)

        self._database.transact(work)

    def remove(self, bisection: str) -> None:
        """Remove a bisection with all its records, and its graph if no other bisection has it.

        Raises RequestError for an unknown id.
        """

        def work() -> None:
            graph = self._row("SELECT graph FROM bisections WHERE id = :id", bisection)["graph"]
            self._database.execute("DELETE FROM events WHERE bisection = :id", id=bisection)
            self._database.execute("DELETE FROM trials WHERE bisection = :id", id=bisection)
            self._database.execute("DELETE FROM scheduling WHERE bisection = :id", id=bisection)
            self._database.execute("DELETE FROM bisections WHERE id = :id", id=bisection)
            self._database.execute(
                "DELETE FROM graphs WHERE checksum = :graph "
                "AND NOT EXISTS (SELECT 1 FROM bisections WHERE graph = :graph)",
                graph=graph,
            )

        try:
            self._database.transact(work)
        except Constrained as error:  # an index lacks rows that the table has
            raise RecordsUnusable(
                f"{self._database.name} is damaged: '{bisection}' cannot be removed: {error}",
                cure="'perfbisect db check' says where",
            ) from error

    def give_back(self) -> int:
        """Return the space of removed rows to the file system; return the number of bytes."""
        return self._database.give_back()

    def _add(self, bisection: str, event: Record | Decision) -> int:
        body = json.dumps(serialization.to_json(event))

        def work() -> int:
            self._lock(bisection)
            return self._insert(bisection, event, body)

        return self._database.transact(work)

    def _lock(self, bisection: str) -> None:
        """Lock a bisection for writing until the transaction ends. Raises Fenced, RequestError."""
        if self._lease is not None:
            check_lease(self._database, self._lease)
        self._row("SELECT id FROM bisections WHERE id = :id FOR UPDATE", bisection)

    def _insert(self, bisection: str, event: Record | Decision, body: str) -> int:
        """Add an event with the next number; the bisection is locked, or nobody else knows it yet."""
        (row,) = self._database.execute(
            "INSERT INTO events (sequence, bisection, kind, body, note) "
            "SELECT coalesce(max(sequence), 0) + 1, :bisection, :kind, :body, :note FROM events "
            "WHERE bisection = :bisection RETURNING sequence",
            bisection=bisection,
            kind="decision" if isinstance(event, Measure | Conclusion) else "record",
            body=body,
            note=NO_NOTE,
        )
        scheduling.take_note(self._database, bisection, event)
        return int(row["sequence"])

    def _events(self, bisection: str, kind: str, after: int = 0) -> Sequence[Row]:
        return self._database.execute(
            "SELECT bisection, sequence, body, note FROM events "
            "WHERE bisection = :bisection AND kind = :kind AND sequence > :after ORDER BY sequence",
            bisection=bisection,
            kind=kind,
            after=after,
        )

    def _row(self, statement: str, bisection: str) -> Row:
        """Return the one row of a bisection. Raises RequestError for an unknown id."""
        rows = self._database.execute(statement, id=bisection)
        if not rows:
            raise self._unknown(bisection)
        return rows[0]

    def _unknown(self, bisection: str) -> NotFound:
        rows = self._database.execute("SELECT id FROM bisections ORDER BY created DESC")
        known = [row["id"] for row in rows]
        more = f" and {len(known) - _MAX_NAMED:,} more" if len(known) > _MAX_NAMED else ""
        return NotFound(
            f"there is no bisection '{bisection}'{nearest(bisection, known)}",
            details=f"known: {', '.join(known[:_MAX_NAMED]) or 'none'}{more}",
            cure="'perfbisect list' shows them",
        )
