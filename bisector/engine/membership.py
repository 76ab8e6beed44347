"""A process among the executors of a database server: it says that it lives, and fences those that do not."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bisector.errors import Fenced, InfrastructureError
from bisector.model.leases import HEARTBEAT_TTL_SECONDS, Lease
from bisector.store_ports import Coordinator, Store

START = "start@"
"""How the name of an executor begins that executes its own bisection only."""

_TTL_SECONDS = HEARTBEAT_TTL_SECONDS
_BEATS = 6
"""Heartbeats until a silent process counts as dead: several may be late."""


class Membership:
    """One executor and its leases. `acquire` and `release` are called from one thread."""

    def __init__(self, coordinator: Coordinator, executor: str) -> None:
        """executor: its id, which is registered."""
        self._coordinator = coordinator
        self._executor = executor
        self._lost = threading.Event()

    @property
    def is_lost(self) -> bool:
        """Whether this process counts as dead: it may write nothing any more, and must end."""
        return self._lost.is_set()

    def acquire_bisection(self, bisection: str) -> Lease | None:
        """Return the lease of a bisection, None while another executor has it."""
        return self._acquire(resource_of(bisection))

    def acquire_testbed(self, testbed: str) -> Lease | None:
        """Return the lease of a testbed, None while another executor has it."""
        return self._acquire(f"testbed {testbed}")

    def release(self, lease: Lease) -> None:
        """Let others have what was leased. What cannot be said now is said by the end of our heartbeat."""
        with suppress(InfrastructureError):
            self._coordinator.release(lease)

    def error(self) -> InfrastructureError:
        """Return the error of a process that counts as dead."""
        text = (
            f"the database did not hear of this process for {HEARTBEAT_TTL_SECONDS:.0f} s: it counts as dead"
        )
        cure = "what it executed goes on with another one; start it again"
        return InfrastructureError(text, cure=cure)

    def _acquire(self, resource: str) -> Lease | None:
        try:
            return self._coordinator.acquire(resource, self._executor)
        except Fenced:
            self._lost.set()
            return None

    def beat(self) -> None:
        """Say that we live, and fence those that do not."""
        try:
            self._coordinator.heartbeat(self._executor)
            self._coordinator.fence_silent(_TTL_SECONDS)
        except Fenced:
            self._lost.set()
        except InfrastructureError:  # the server is away: whoever works with it says so
            pass


def resource_of(bisection: str) -> str:
    """Return what is leased by whoever executes a bisection."""
    return f"bisection {bisection}"


@contextmanager
def join(coordinator: Coordinator, name: str) -> Iterator[Membership]:
    """Be an executor while the block runs. Raises RequestError: one of this name lives."""
    executor = f"{name}-{uuid.uuid4().hex[:12]}"
    coordinator.register(executor, name)
    coordinator.fence_silent(_TTL_SECONDS)  # nobody else may be there to do it
    membership, ended = Membership(coordinator, executor), threading.Event()

    def beat() -> None:
        while not ended.wait(_TTL_SECONDS / _BEATS) and not membership.is_lost:
            membership.beat()

    thread = threading.Thread(target=beat, daemon=True, name="heartbeat")
    thread.start()
    try:
        yield membership
    finally:
        ended.set()
        thread.join(_TTL_SECONDS / _BEATS)
        with suppress(InfrastructureError):
            coordinator.unregister(executor)


def requeue_unleased(store: Store, coordinator: Coordinator) -> None:
    """Queue bisections again whose executor has died: they are running, and nobody has a lease of them."""
    leased = {lease.resource for lease in coordinator.leases()}
    for summary in store.list(statuses=("running",)):
        if resource_of(summary.id) not in leased:
            store.set_status(summary.id, "queued", expected=("running",))
