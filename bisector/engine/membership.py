"""An executor of a database server: it sends heartbeats, and fences executors that have fallen silent.

The two clocks are never compared. The database's clock tells how long an executor was silent; this host's
monotonic clock tells when this process last reached the database. An executor that has not reached it for a
while stops before others may take over its leases, and then fences nobody until every other one has had the
time to send a heartbeat again.
"""

from __future__ import annotations

import hashlib
import socket
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bisector.errors import Fenced, InfrastructureError
from bisector.model.leases import HEARTBEAT_TTL_SECONDS, Lease
from bisector.store_ports import Coordinator, Store

START = "start@"
"""Prefix of the name of an executor that executes only its own bisection."""

_TESTBED = "testbed "
_TTL_SECONDS = HEARTBEAT_TTL_SECONDS
_BEATS = 6
"""Heartbeats until a silent process counts as dead: several may be late."""
_STOP_BEATS = 4
"""Heartbeats that must fail before a process stops by itself: it has two more to end its guests before
others may take its testbeds."""

_KEEP_SECONDS = 30 * 86400.0
"""How long rows of dead executors and of free leases are kept: as long as `db prune` keeps them."""
_TIDY_SECONDS = 86400.0
"""How often an executor removes older ones; a worker runs for months."""


class Membership:
    """One executor and its leases. Leases are acquired and released from one thread."""

    def __init__(self, coordinator: Coordinator, executor: str, name: str) -> None:
        """executor: its id, which was registered just now with this name."""
        self.when_lost: Callable[[], object] = lambda: None
        """Called once, in a thread of its own, when `is_lost` begins to hold."""
        self._coordinator = coordinator
        self._executor, self._name = executor, name
        self._lost = threading.Event()
        self._why = ""
        self._heard = self._steady = time.monotonic()  # last heartbeat; since when none was missed
        self._tidied = float("-inf")

    @property
    def is_lost(self) -> bool:
        """Whether this process counts as dead, or will before it knows: it must end all that it does."""
        return self._lost.is_set()

    @property
    def executor(self) -> str:
        """Our id."""
        return self._executor

    def acquire_bisection(self, bisection: str) -> Lease | None:
        """Return our lease of a bisection, to write to it; other executors have theirs. None when lost."""
        return self._acquire(_resource_of(bisection, self._name))

    def executes_alone(self, bisection: str) -> bool:
        """Return whether no other executor has a lease of a bisection."""
        others = [lease for lease in self._coordinator.leases() if lease.executor != self._executor]
        return not any(bisection_of(lease) == bisection for lease in others)

    def uses_of_others(self) -> Collection[tuple[str, str]]:
        """Return (bisection, testbed) of what other executors have leased, where they execute one bisection.

        It has the testbed from the lease on: until its first trial there is under way, seconds may pass.
        """
        bisections, testbeds = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for lease in self._coordinator.leases():
            if lease.executor != self._executor:
                if (bisection := bisection_of(lease)) is not None:
                    bisections[lease.executor].add(bisection)
                elif lease.resource.startswith(_TESTBED):
                    testbeds[lease.executor].add(lease.resource.removeprefix(_TESTBED))
        only = {executor: one for executor, found in bisections.items() for one in found if len(found) == 1}
        return {(one, testbed) for executor, one in only.items() for testbed in testbeds[executor]}

    def acquire_testbed(self, testbed: str) -> Lease | None:
        """Return the lease of a testbed, None while another executor has it."""
        return self._acquire(testbed_resource(testbed))

    def user_of(self, testbed: str) -> str:
        """Return a sentence on who uses a testbed whose lease was refused."""
        names = {executor.id: executor for executor in self._coordinator.executors()}
        for lease in self._coordinator.leases():
            if lease.resource == testbed_resource(testbed) and lease.executor in names:
                user = names[lease.executor]
                return f"'{user.name}' (last heard of {user.silent:.0f} s ago)"
        return "another process"

    def wanted_testbeds(self) -> Collection[str]:
        """Return the testbeds that we have leased and another executor waits for."""
        wanted = self._coordinator.wanted(self._executor)
        return {resource.removeprefix(_TESTBED) for resource in wanted if resource.startswith(_TESTBED)}

    def release(self, lease: Lease) -> None:
        """Give a lease back. If that fails, it ends with our heartbeats."""
        with suppress(InfrastructureError):
            self._coordinator.release(lease)

    def error(self) -> InfrastructureError:
        """Return why this process is lost."""
        cure = "another executor goes on with its bisections; start it again"
        return InfrastructureError(self._why, cure=cure)

    def beat(self) -> None:
        """Send a heartbeat, and fence executors that are silent."""
        try:
            took = float("inf")
            while took > _TTL_SECONDS / _BEATS:  # too slow to know when the server heard it: once more
                began = time.monotonic()
                self._coordinator.heartbeat(self._executor)
                now = time.monotonic()
                took = now - began
            if now - self._heard > 2 * _TTL_SECONDS / _BEATS:
                self._steady = now  # in so long a gap others may not have been heard either: fence nobody yet
            self._heard = began
            if now - self._steady >= _TTL_SECONDS:
                self._coordinator.fence_silent(_TTL_SECONDS)
            if now > self._tidied + _TIDY_SECONDS:
                self._tidied = now
                self._coordinator.forget_unused(_KEEP_SECONDS)
        except Fenced:
            self._lose(
                f"the database did not hear from this process for {_TTL_SECONDS:.0f} s: it counts as dead"
            )
        except InfrastructureError:  # the server is away: those who need it report that
            pass

    def check_reach(self) -> None:
        """Mark this process as lost when the database was away so long that others may soon take over."""
        limit = _TTL_SECONDS * _STOP_BEATS / _BEATS
        if time.monotonic() - self._heard > limit:
            self._lose(f"the database was not reached for {limit:.0f} s: others may take over the testbeds")

    def _acquire(self, resource: str) -> Lease | None:
        if self.is_lost:
            return None
        try:
            return self._coordinator.acquire(resource, self._executor)
        except Fenced:
            self._lose("another process has fenced this one: it counts as dead")
            return None

    def _lose(self, why: str) -> None:
        if not self._lost.is_set():
            self._why = why
            self._lost.set()
            threading.Thread(target=self.when_lost, daemon=True, name="lost").start()


def testbed_resource(testbed: str) -> str:
    """Return the name of a testbed's lease."""
    return f"{_TESTBED}{testbed}"


def bisection_of(lease: Lease) -> str | None:
    """Return which bisection the holder of a lease executes; None for a lease of something else."""
    kind, _, rest = lease.resource.partition(" ")
    return rest.partition(" ")[0] if kind == "bisection" else None


def _resource_of(bisection: str, executor: str) -> str:
    """Return the name of the lease that an executor has of a bisection. executor: its name."""
    return f"bisection {bisection} by {executor}"


@contextmanager
def join(coordinator: Coordinator, name: str, state_dir: Path) -> Iterator[Membership]:
    """Be an executor while the block runs. Raises RequestError: one of this name lives.

    state_dir: whose lock we hold, so that an earlier executor of this name there is known to be dead.
    """
    executor = f"{name}@{_place(state_dir)}-{uuid.uuid4().hex[:12]}"
    coordinator.register(executor, name)
    membership, ended = Membership(coordinator, executor, name), threading.Event()
    pause = _TTL_SECONDS / _BEATS

    def beat() -> None:
        while not ended.wait(pause) and not membership.is_lost:
            membership.beat()

    def watch() -> None:  # the heartbeat itself may wait long for a server that is away
        while not ended.wait(pause / 2) and not membership.is_lost:
            membership.check_reach()

    threads = [threading.Thread(target=work, daemon=True, name=work.__name__) for work in (beat, watch)]
    for thread in threads:
        thread.start()
    try:
        yield membership
    finally:
        ended.set()
        threads[0].join(pause)
        with suppress(InfrastructureError):
            coordinator.unregister(executor)


def this_host() -> str:
    """Return what identifies this host, its name first: cloned ones may have one machine-id."""
    machine = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    return f"{socket.gethostname()} ({_digest(machine)[:8]})" if machine else socket.gethostname()


def _place(state_dir: Path) -> str:
    """Return a short name of a state folder on this machine."""
    return _digest(f"{this_host()} {state_dir.resolve()}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def requeue_unleased(store: Store, coordinator: Coordinator) -> None:
    """Queue bisections again whose executor has died: they are running, and nobody has a lease of them."""
    running = store.list(statuses=("running",))  # first: what is taken up after that has a lease
    executed = {bisection_of(lease) for lease in coordinator.leases()}
    for summary in running:
        if summary.id not in executed:
            store.set_status(summary.id, "queued", expected=("running",))
