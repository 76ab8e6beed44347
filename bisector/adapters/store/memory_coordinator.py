"""A coordinator without a database: for tests, and for a lab that one process plays."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from bisector.adapters.store.refusals import check_name, check_reservation, executor_fenced, lease_lost
from bisector.model.leases import (
    HEARTBEAT_TTL_SECONDS,
    WANTED_TTL_SECONDS,
    Executor,
    Lease,
    Reservation,
    TestbedState,
    TestbedStatus,
)
from bisector.model.machine_hours import WEEK_HOURS, hour_of


class MemoryCoordinator:
    """store_ports.Coordinator that forgets everything with its process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: stands for the database's."""
        self._clock = clock
        self._lock = threading.RLock()
        self._executors: dict[str, tuple[str, float, bool]] = {}
        self._leases: dict[str, Lease] = {}
        self._wanted: dict[str, tuple[str, float]] = {}  # resource -> who waits for it, when it asked last
        self._testbeds: dict[str, TestbedStatus] = {}
        self._reservations: list[Reservation] = []
        self._machine_time: dict[tuple[str, int], float] = defaultdict(float)
        self._hosts: dict[str, str] = {}

    def now(self) -> float:
        """Return the clock's time."""
        return self._clock()

    def register(self, executor: str, name: str) -> None:
        """Add an executor by a new id. Raises RequestError: another one of this name lives."""
        with self._lock:
            others = [e for e in self.executors() if e.name == name and not e.fenced]
            check_name(executor, others)
            for other in others:
                self._fence(other)
            self._executors[executor] = (name, self._clock(), False)

    def heartbeat(self, executor: str) -> None:
        """Say that an executor lives. Raises Fenced."""
        with self._lock:
            self._check_alive(executor)
            name, _, fenced = self._executors[executor]
            self._executors[executor] = (name, self._clock(), fenced)

    def unregister(self, executor: str) -> None:
        """Forget an executor that ends, with its leases."""
        with self._lock:
            for known in self.executors():
                if known.id == executor:
                    self._fence(known)
                    del self._executors[executor]

    def executors(self) -> Sequence[Executor]:
        """Return all that were registered and did not unregister, by name and last heartbeat."""
        with self._lock:
            known = [
                Executor(id, name, seen, self._clock() - seen, fenced)
                for id, (name, seen, fenced) in self._executors.items()
            ]
        return sorted(known, key=lambda e: (e.name, e.seen))

    def fence_silent(self, ttl: float = HEARTBEAT_TTL_SECONDS) -> Sequence[Executor]:
        """Fence executors without a heartbeat for `ttl` seconds, free their leases; return those fenced."""
        with self._lock:
            dead = [e for e in self.executors() if not e.fenced and e.silent >= ttl]
            for executor in dead:
                self._fence(executor)
            return dead

    def acquire(self, resource: str, executor: str) -> Lease | None:
        """Return a lease with a new epoch; None while another executor holds one. Raises Fenced."""
        with self._lock:
            self._check_alive(executor)
            last = self._leases.get(resource, Lease(resource, "", 0))
            first, since = self._wanted.get(resource, ("", 0.0))
            waits = first not in ("", executor) and since >= self._clock() - WANTED_TTL_SECONDS
            if last.executor not in ("", executor) or (not last.executor and waits):
                if not waits:
                    self._wanted[resource] = executor, self._clock()
                return None
            if not waits:
                self._wanted.pop(resource, None)
            lease = self._leases[resource] = Lease(resource, executor, last.epoch + 1)
            return lease

    def wanted(self, executor: str) -> Collection[str]:
        """Return what an executor has leased and another one waits for."""
        with self._lock:
            since = self._clock() - WANTED_TTL_SECONDS
            held = {lease.resource for lease in self.leases() if lease.executor == executor}
            return {r for r, (by, at) in self._wanted.items() if r in held and by != executor and at >= since}

    def check(self, lease: Lease) -> None:
        """Raise Fenced where a lease holds no longer."""
        with self._lock:
            if self._leases.get(lease.resource) != lease:
                raise lease_lost(lease)

    def release(self, lease: Lease) -> None:
        """Free the resource. Does nothing for a lease that holds no longer."""
        with self._lock:
            if self._leases.get(lease.resource) == lease:
                self._leases[lease.resource] = Lease(lease.resource, "", lease.epoch)

    def leases(self) -> Sequence[Lease]:
        """Return the leases that are held, by resource."""
        with self._lock:
            return [lease for _, lease in sorted(self._leases.items()) if lease.executor]

    def forget_unused(self, seconds: float) -> int:
        """Forget executors that count as dead for so long; return how many. Leases go with the process."""
        with self._lock:
            dead = [e for e in self.executors() if e.fenced and e.silent > seconds]
            for executor in dead:
                del self._executors[executor.id]
            return len(dead)

    def bind_testbed(self, testbed: str, host: str, *, move: bool) -> str:
        """Return the host that has a testbed: this one if none has it, or if it moves there."""
        with self._lock:
            if move:
                self._hosts[testbed] = host
            return self._hosts.setdefault(testbed, host)

    def testbed_hosts(self) -> Mapping[str, str]:
        """Return the hosts of testbeds that were bound to one."""
        return dict(self._hosts)

    def set_testbed(self, name: str, state: TestbedState, reason: str, by: str) -> None:
        """Say what a testbed may be used for from now on, and why."""
        with self._lock:
            self._testbeds[name] = TestbedStatus(name, state, reason, by, self._clock())

    def testbeds(self) -> Sequence[TestbedStatus]:
        """Return the status of all testbeds that ever had one, by name."""
        with self._lock:
            return [self._testbeds[name] for name in sorted(self._testbeds)]

    def reserve(self, testbed: str, who: str, end: float, start: float | None = None) -> Reservation:
        """Reserve a testbed for a person, by default from now on. Raises RequestError."""
        with self._lock:
            now = self._clock()
            wanted = Reservation(testbed, who, now if start is None else start, end)
            check_reservation(wanted, self.reservations(), now)
            key = testbed, who, wanted.start
            others = [r for r in self._reservations if (r.testbed, r.who, r.start) != key]
            self._reservations = [*others, wanted]
            return wanted

    def unreserve(self, testbed: str, who: str) -> int:
        """End a person's reservations of a testbed; return how many there were."""
        with self._lock:
            ended = [r for r in self.reservations() if (r.testbed, r.who) == (testbed, who)]
            self._reservations = [r for r in self._reservations if r not in ended]
            return len(ended)

    def reservations(self) -> Sequence[Reservation]:
        """Return those that have not ended, by start."""
        with self._lock:
            now = self._clock()
            return sorted((r for r in self._reservations if r.end > now), key=lambda r: (r.start, r.testbed))

    def add_machine_time(self, owner: str, seconds: float) -> None:
        """Count seconds of testbeds that an owner's bisections had, in the present hour."""
        with self._lock:
            self._machine_time[owner, hour_of(self._clock())] += seconds

    def machine_time(self, owner: str) -> Mapping[int, float]:
        """Return the seconds of the last week, by hour since the epoch."""
        first = hour_of(self._clock()) - WEEK_HOURS
        return {h: seconds for (who, h), seconds in self._machine_time.items() if who == owner and h > first}

    def _check_alive(self, executor: str) -> None:
        if executor not in self._executors or self._executors[executor][2]:
            raise executor_fenced(executor)

    def _fence(self, executor: Executor) -> None:
        self._executors[executor.id] = (executor.name, executor.seen, True)
        self._wanted = {r: waits for r, waits in self._wanted.items() if waits[0] != executor.id}
        for lease in self.leases():
            if lease.executor == executor.id:
                self.release(lease)
