"""Executors, leases, testbeds and reservations in a SQL database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from bisector.adapters.store import machine_time
from bisector.adapters.store.database import Database, Row, read_clock
from bisector.adapters.store.refusals import check_name, check_reservation, executor_fenced
from bisector.adapters.store.sql_trials import check_lease
from bisector.model.leases import (
    HEARTBEAT_TTL_SECONDS,
    WANTED_TTL_SECONDS,
    Executor,
    Lease,
    Reservation,
    TestbedState,
    TestbedStatus,
)


class SqlCoordinator:
    """store_ports.Coordinator in the database of the bisections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def now(self) -> float:
        """Return the database's time, seconds since the epoch."""
        return read_clock(self._database)

    def register(self, executor: str, name: str) -> None:
        """Add an executor by a new id. Raises RequestError: another one of this name lives.

        What executors have leased that are not there is freed: `db move` once copied leases without them.
        """

        def work() -> None:
            # One at a time for a name; also where there is no row yet that could be locked.
            self._lock_resource(f"name of executors: {name}")
            others = [e for e in self.executors() if e.name == name and not e.fenced]
            check_name(executor, others)
            for other in others:
                self._fence(other.id)
            gone = "SELECT DISTINCT executor FROM leases WHERE executor NOT IN (SELECT id FROM executors)"
            for row in self._database.execute(gone):
                self._free(row["executor"])
            self._database.execute(
                "INSERT INTO executors (id, name, seen, fenced) VALUES (:id, :name, seconds_now(), 0)",
                id=executor,
                name=name,
            )

        self._database.transact(work)

    def heartbeat(self, executor: str) -> None:
        """Say that an executor lives. Raises Fenced."""
        alive = self._database.execute(
            "UPDATE executors SET seen = seconds_now() WHERE id = :id AND fenced = 0 RETURNING id",
            id=executor,
        )
        if not alive:
            raise executor_fenced(executor)

    def unregister(self, executor: str) -> None:
        """Forget an executor that ends, with its leases."""

        def work() -> None:
            self._fence(executor)
            self._database.execute("DELETE FROM executors WHERE id = :id", id=executor)

        self._database.transact(work)

    def executors(self) -> Sequence[Executor]:
        """Return all that were registered and did not unregister, by name and last heartbeat."""
        return [
            _executor(row)
            for row in self._database.execute(
                "SELECT id, name, seen, seconds_now() AS now, fenced FROM executors ORDER BY name, seen"
            )
        ]

    def fence_silent(self, ttl: float = HEARTBEAT_TTL_SECONDS) -> Sequence[Executor]:
        """Fence executors without a heartbeat for `ttl` seconds, free their leases; return those fenced."""

        def work() -> Sequence[Executor]:
            fenced = []
            for executor in self.executors():
                if not executor.fenced and executor.silent >= ttl and self._fence(executor.id, executor.seen):
                    fenced.append(executor)
            return fenced

        return self._database.transact(work)

    def acquire(self, resource: str, executor: str) -> Lease | None:
        """Return a lease with a new epoch; None while another executor holds one. Raises Fenced."""

        def work() -> Lease | None:
            living = "SELECT id FROM executors WHERE id = :id AND fenced = 0 FOR SHARE"
            if not self._database.execute(living, id=executor):
                raise executor_fenced(executor)
            rows = self._database.execute(
                "INSERT INTO leases (resource, executor, epoch, used) "
                "VALUES (:resource, :executor, 1, seconds_now()) "
                "ON CONFLICT (resource) DO UPDATE SET executor = excluded.executor, used = excluded.used, "
                "epoch = leases.epoch + 1, wanted_by = nullif(leases.wanted_by, excluded.executor) "
                "WHERE leases.executor = excluded.executor OR (leases.executor IS NULL "
                "AND (leases.wanted_by IS NULL OR leases.wanted_by = excluded.executor "
                "OR leases.wanted_at < seconds_now() - :ttl)) RETURNING epoch",
                resource=resource,
                executor=executor,
                ttl=WANTED_TTL_SECONDS,
            )
            if rows:
                return Lease(resource, executor, rows[0]["epoch"])
            self._database.execute(
                "UPDATE leases SET wanted_by = :executor, wanted_at = seconds_now() "
                "WHERE resource = :resource AND (wanted_by IS NULL OR wanted_by = :executor "
                "OR wanted_at < seconds_now() - :ttl)",
                resource=resource,
                executor=executor,
                ttl=WANTED_TTL_SECONDS,
            )
            return None

        return self._database.transact(work)

    def check(self, lease: Lease) -> None:
        """Raise Fenced where a lease holds no longer."""
        self._database.transact(lambda: check_lease(self._database, lease))

    def wanted(self, executor: str) -> Collection[str]:
        """Return what an executor has leased and another one waits for."""
        rows = self._database.execute(
            "SELECT resource FROM leases WHERE executor = :executor AND wanted_by <> :executor "
            "AND wanted_at >= seconds_now() - :ttl",
            executor=executor,
            ttl=WANTED_TTL_SECONDS,
        )
        return {row["resource"] for row in rows}

    def release(self, lease: Lease) -> None:
        """Free the resource. Does nothing for a lease that holds no longer."""
        self._database.execute(
            "UPDATE leases SET executor = NULL, used = seconds_now() "
            "WHERE resource = :resource AND executor = :executor AND epoch = :epoch",
            resource=lease.resource,
            executor=lease.executor,
            epoch=lease.epoch,
        )

    def leases(self) -> Sequence[Lease]:
        """Return the leases that are held, by resource."""
        rows = self._database.execute(
            "SELECT resource, executor, epoch FROM leases WHERE executor IS NOT NULL ORDER BY resource"
        )
        return [Lease(row["resource"], row["executor"], row["epoch"]) for row in rows]

    def forget_unused(self, seconds: float) -> int:
        """Forget leases that are free and executors that count as dead, both for so long; return how many."""

        def work() -> int:
            dead = self._database.execute(
                "DELETE FROM executors WHERE fenced = 1 AND seen < seconds_now() - :age RETURNING id",
                age=seconds,
            )
            free = self._database.execute(
                "DELETE FROM leases WHERE executor IS NULL AND used < seconds_now() - :age RETURNING epoch",
                age=seconds,
            )
            return len(dead) + len(free)

        return self._database.transact(work)

    def bind_testbed(self, testbed: str, host: str, *, move: bool) -> str:
        """Return the host that has a testbed: this one if none has it, or if it moves there."""
        (row,) = self._database.execute(
            "INSERT INTO testbed_hosts (testbed, host) VALUES (:testbed, :host) ON CONFLICT (testbed) "
            "DO UPDATE SET host = CASE CAST(:move AS INTEGER) WHEN 1 THEN excluded.host "
            "ELSE testbed_hosts.host END RETURNING host",
            testbed=testbed,
            host=host,
            move=int(move),
        )
        return str(row["host"])

    def testbed_hosts(self) -> Mapping[str, str]:
        """Return the hosts of testbeds that were bound to one."""
        rows = self._database.execute("SELECT testbed, host FROM testbed_hosts")
        return {row["testbed"]: row["host"] for row in rows}

    def set_testbed(self, name: str, state: TestbedState, reason: str, by: str) -> None:
        """Say what a testbed may be used for from now on, and why."""
        self._database.execute(
            "INSERT INTO testbeds (name, state, reason, changed_by, since) "
            "VALUES (:name, :state, :reason, :by, seconds_now()) "
            "ON CONFLICT (name) DO UPDATE SET state = excluded.state, reason = excluded.reason, "
            "changed_by = excluded.changed_by, since = excluded.since",
            name=name,
            state=state,
            reason=reason,
            by=by,
        )

    def testbeds(self) -> Sequence[TestbedStatus]:
        """Return the status of all testbeds that ever had one, by name."""
        rows = self._database.execute(
            "SELECT name, state, reason, changed_by, since FROM testbeds ORDER BY name"
        )
        return [TestbedStatus(r["name"], r["state"], r["reason"], r["changed_by"], r["since"]) for r in rows]

    def reserve(self, testbed: str, who: str, end: float, start: float | None = None) -> Reservation:
        """Reserve a testbed for a person, by default from now on. Raises RequestError."""

        def work() -> Reservation:
            now = self.now()
            wanted = Reservation(testbed, who, now if start is None else start, end)
            self._lock_resource(testbed)
            check_reservation(wanted, self.reservations(), now)
            whole = wanted.joined(self.reservations())
            values: dict[str, str | float] = asdict(whole)
            self._database.execute(
                "DELETE FROM reservations WHERE testbed = :testbed AND who = :who "
                "AND starts >= :start AND ends <= :end",
                **values,
            )
            self._database.execute(
                "INSERT INTO reservations (testbed, who, starts, ends) VALUES (:testbed, :who, :start, :end)",
                **values,
            )
            return whole

        return self._database.transact(work)

    def unreserve(self, testbed: str, who: str) -> int:
        """End a person's reservations of a testbed; return how many there were."""
        return self._database.transact(
            lambda: len(
                self._database.execute(
                    "DELETE FROM reservations WHERE testbed = :testbed AND who = :who "
                    "AND ends > seconds_now() RETURNING who",
                    testbed=testbed,
                    who=who,
                )
            )
        )

    def reservations(self) -> Sequence[Reservation]:
        """Return those that have not ended, by start."""
        rows = self._database.execute(
            "SELECT testbed, who, starts, ends FROM reservations WHERE ends > seconds_now() "
            "ORDER BY starts, testbed"
        )
        return [Reservation(row["testbed"], row["who"], row["starts"], row["ends"]) for row in rows]

    def add_machine_time(self, owner: str, seconds: float) -> None:
        """Count seconds of testbeds that an owner's bisections had, in the present hour."""
        machine_time.add(self._database, owner, seconds)

    def machine_time(self, owner: str) -> Mapping[int, float]:
        """Return the seconds of the last week, by hour since the epoch."""
        return machine_time.of_last_week(self._database, owner)

    def _lock_resource(self, resource: str) -> None:
        """Let nobody else lease, reserve or lock a resource until the transaction ends."""
        self._database.execute(
            "INSERT INTO leases (resource, epoch, used) VALUES (:resource, 0, seconds_now()) "
            "ON CONFLICT (resource) DO UPDATE SET used = excluded.used",
            resource=resource,
        )

    def _fence(self, executor: str, seen: float | None = None) -> bool:
        """Mark an executor, unless it was heard of after `seen`; free its leases. Return whether it was."""
        marked = self._database.execute(
            "UPDATE executors SET fenced = 1 WHERE id = :id AND fenced = 0 AND seen = coalesce(:seen, seen) "
            "RETURNING id",
            id=executor,
            seen=seen,
        )
        if marked:
            self._free(executor)
        return bool(marked)

    def _free(self, executor: str) -> None:
        """Free the leases of a dead executor; it waits for none, and its trials are under way no longer."""
        self._database.execute(
            # One statement: two that end at once and wait for each other's lock the rows in one order.
            "UPDATE leases SET used = CASE executor WHEN :executor THEN seconds_now() ELSE used END, "
            "executor = nullif(executor, :executor), wanted_by = nullif(wanted_by, :executor) "
            "WHERE executor = :executor OR wanted_by = :executor",
            executor=executor,
        )
        self._database.execute("DELETE FROM trials WHERE executor = :executor", executor=executor)


def _executor(row: Row) -> Executor:
    silent = max(0.0, row["now"] - row["seen"])  # a clock that was set back does not make it negative
    return Executor(row["id"], row["name"], row["seen"], silent, bool(row["fenced"]))
