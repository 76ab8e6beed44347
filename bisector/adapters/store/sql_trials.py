"""The trials under way in a SQL database, and writes that are refused if another process was first.

A trial's row is written with its decision, in one transaction under the lock of the bisection's row, and goes
with the trial's end or when its executor counts as dead (`SqlCoordinator`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from bisector.adapters.store import scheduling
from bisector.adapters.store.database import Database
from bisector.adapters.store.refusals import lease_lost
from bisector.adapters.store.rows import parse_object
from bisector.errors import InfrastructureError
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.leases import Lease
from bisector.model.records import Record
from bisector.model.stored_bisection import ENDED
from bisector.schemas import serialization

_OURS = ""
"""The executor of trials where there are no leases: only one process executes a state file."""


def check_lease(database: Database, lease: Lease) -> None:
    """Raise Fenced if a lease is lost. Otherwise it cannot be lost before the transaction ends.

    To take it away, others must mark its executor, whose row is locked here.
    """
    valid = database.execute(
        "SELECT id FROM executors WHERE id = :executor AND fenced = 0 AND EXISTS "
        "(SELECT 1 FROM leases WHERE resource = :resource AND executor = :executor AND epoch = :epoch) "
        "FOR SHARE",
        resource=lease.resource,
        executor=lease.executor,
        epoch=lease.epoch,
    )
    if not valid:
        raise lease_lost(lease)


class SqlTrials(ABC):
    """The part of store_ports.Store that coordinates several deciding processes."""

    _database: Database
    _lease: Lease | None

    @abstractmethod
    def _lock(self, bisection: str) -> None:
        """Lock a bisection for writing until the transaction ends."""

    @abstractmethod
    def status(self, bisection: str) -> str:
        """Return the status of a bisection."""

    @abstractmethod
    def _insert(self, bisection: str, event: Record | Decision, body: str) -> int:
        """Add an event to a locked bisection; return its number."""

    def begin_trial(self, bisection: str, testbed: str, trial: Measure, *, seen: int) -> int | None:
        """Keep a decision and that its trial is under way; None where another one was made after `seen`."""
        body = json.dumps(serialization.to_json(trial))

        def work() -> int | None:
            self._lock(bisection)
            if self._last(bisection, "AND kind = 'decision'") > seen:
                return None
            number = self._insert(bisection, trial, body)
            self._database.execute(
                "INSERT INTO trials (bisection, testbed, executor, number, body) "
                "VALUES (:bisection, :testbed, :executor, :number, :body) ON CONFLICT (bisection, testbed) "
                "DO UPDATE SET executor = excluded.executor, number = excluded.number, body = excluded.body",
                bisection=bisection,
                testbed=testbed,
                executor=_OURS if self._lease is None else self._lease.executor,
                number=number,
                body=body,
            )
            return number

        return self._database.transact(work)

    def end_trial(self, bisection: str, testbed: str) -> None:
        """Take note that the trial of a testbed is over."""

        def work() -> None:
            self._lock(bisection)
            self._database.execute(
                "DELETE FROM trials WHERE bisection = :bisection AND testbed = :testbed",
                bisection=bisection,
                testbed=testbed,
            )

        self._database.transact(work)

    def trials(self, bisection: str) -> tuple[int, Mapping[str, Measure]]:
        """Return the number of the last event, and the trials under way, by testbed, the oldest first."""
        last = self._last(bisection)  # before the rows: a trial that begins in between is then in them
        rows = self._database.execute(
            "SELECT testbed, body FROM trials WHERE bisection = :bisection ORDER BY number",
            bisection=bisection,
        )
        found: dict[str, Measure] = {}
        for row in rows:
            trial = serialization.decision_from(parse_object(row["body"]))
            if not isinstance(trial, Measure):
                raise InfrastructureError("a trial that is under way is no trial", details=row["body"][:80])
            found[row["testbed"]] = trial
        return last, found

    def trials_of_others(self, executor: str) -> Sequence[tuple[str, str]]:
        """Return (bisection, testbed) of the trials under way in other processes than an executor."""
        rows = self._database.execute(
            "SELECT bisection, testbed FROM trials WHERE executor <> :executor ORDER BY bisection, testbed",
            executor=executor,
        )
        return [(row["bisection"], row["testbed"]) for row in rows]

    def note_building(self, bisection: str, building: bool) -> None:
        """Note whether a kernel is being built for a bisection that gave up its testbed meanwhile."""
        scheduling.set_building(self._database, bisection, building)

    def conclude(self, bisection: str, conclusion: Conclusion, *, seen: int) -> int | None:
        """Keep the end of a search; None where a trial is under way, or something was recorded since."""
        body = json.dumps(serialization.to_json(conclusion))

        def work() -> int | None:
            self._lock(bisection)
            last, under_way = self.trials(bisection)
            return None if under_way or last != seen else self._insert(bisection, conclusion, body)

        return self._database.transact(work)

    def append_while_open(self, bisection: str, record: Record) -> int | None:
        """Add a record; None where the bisection is over, or its last decision is its end."""
        body = json.dumps(serialization.to_json(record))

        def work() -> int | None:
            self._lock(bisection)
            if self.status(bisection) in ENDED or self._has_concluded(bisection):
                return None
            return self._insert(bisection, record, body)

        return self._database.transact(work)

    def _has_concluded(self, bisection: str) -> bool:
        """Return whether the last decision is the end; one that others followed was taken back."""
        rows = self._database.execute(
            "SELECT body FROM events WHERE bisection = :id AND kind = 'decision' "
            "ORDER BY sequence DESC LIMIT 1",
            id=bisection,
        )
        decisions = [serialization.decision_from(parse_object(row["body"])) for row in rows]
        return any(isinstance(decision, Conclusion) for decision in decisions)

    def number_boot(self, bisection: str, at_least: int) -> int:
        """Return a number that no boot of the bisection had."""

        def work() -> int:
            self._lock(bisection)
            (row,) = self._database.execute(
                "UPDATE bisections SET numbered = CASE WHEN numbered < :least THEN :least "
                "ELSE numbered + 1 END WHERE id = :id RETURNING numbered",
                id=bisection,
                least=at_least,
            )
            return int(row["numbered"])

        return self._database.transact(work)

    def _last(self, bisection: str, which: str = "") -> int:
        """Return the number of a bisection's last event. which: a further condition in SQL."""
        (row,) = self._database.execute(
            f"SELECT coalesce(max(sequence), 0) AS last FROM events WHERE bisection = :id {which}",  # noqa: S608
            id=bisection,
        )
        return int(row["last"])
