"""The one executor of a state folder: shares its testbeds among the bisections that are to be executed.

The process that holds the folder's lock executes its own bisection and those that others have queued there.
Nothing is kept beside the records and statuses in the store: an executor that dies is replaced by any other.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bisector.engine import waiting
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.disk_reserve import DiskReserve, remove_reserve
from bisector.engine.events import OnEvent
from bisector.engine.membership import START, Membership, join, requeue_unleased
from bisector.engine.services import Services
from bisector.engine.sharing import Others, TestbedSharing
from bisector.engine.state_lock import QUEUE, Busy, lock
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.stored_bisection import OPEN, TO_EXECUTE, Stored
from bisector.store_ports import Coordinator, Store

_POLL_SECONDS = 0.2
"""How soon Ctrl-C, a cancelled bisection and one that was queued are noticed."""
_SHUTDOWN_SECONDS = 30.0
"""Timeout of a build or boot to end after its guest and children ended; then the process ends anyway."""

_RECOVER_SECONDS = 5.0
"""How often a worker looks for bisections whose executor has died: a sixth of what it takes to die."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C, SIGTERM or closed terminal set `stop`; a second Ctrl-C ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: object) -> None:
        if number == signal.SIGINT and stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def tidy(stored: Stored, services: Services) -> None:
    """End and remove what a process left that was killed when the conclusion was written already.

    Nothing is touched while another process works in this state folder.
    """
    with contextlib.suppress(Busy), lock(services.state_dir, stored.id):
        services.tidy(services.folder(stored.id))
        remove_reserve(services.state_dir)


def execute(
    stored: Stored,
    services: Services,
    on_event: OnEvent,
    stop: threading.Event,
    others: Others | None = None,
) -> None:
    """Run a bisection to its end, and meanwhile those that are queued; its conclusion is then in the store.

    others: None leaves queued ones alone. Raises Busy, Interrupted (stop was set, Ctrl-C or
    SIGTERM), RequestError (something it was begun with has changed) or InfrastructureError; it can be
    resumed after each.
    """
    with ExitStack() as held:
        held.enter_context(lock(services.state_dir, stored.id))
        held.enter_context(_resumable(stored.id))
        membership, lease, store = None, None, services.store
        if services.coordinator is not None:
            name = f"{START}{socket.gethostname()}:{os.getpid()}"
            membership = held.enter_context(join(services.coordinator, name))
            lease = membership.acquire_bisection(stored.id)
            if lease is None:
                raise Busy(None)
            store = store.fenced(lease)
        own = BisectionRun(stored, lambda: services, on_event, stop, (), lease)
        if not store.set_status(stored.id, "running", expected=OPEN):  # ended while we prepared
            raise Interrupted(f"the bisection '{stored.id}' was {store.status(stored.id)}")
        reserve = DiskReserve(services.state_dir)
        sharing = TestbedSharing(services.store, others, own, membership, services.why_not)
        full = False
        try:
            if membership is None:
                waiting.recover(store, services.state_dir, stored.id)
            while not (own.ended or full or _is_lost(membership)):
                sharing.share()
                sharing.wait(_POLL_SECONDS)
                full = reserve.is_full()
        except KeyboardInterrupt:
            stop.set()
        except BaseException:
            _record_failure(store, stored.id)
            raise
        finally:
            sharing.end(_SHUTDOWN_SECONDS / 6 if full else _SHUTDOWN_SECONDS)
            reserve.release()
        if membership is not None and membership.is_lost:
            raise membership.error()
        _tell_end(own, store, reserve.error() if full else None)


def serve(
    store: Store,
    state_dir: Path,
    others: Others,
    stop: threading.Event,
    *,
    until_idle: bool,
    coordinator: Coordinator | None = None,
    name: str = "worker",
    why_not: Callable[[str], str | None] = lambda testbed: None,
) -> None:
    """Execute what is queued until told to stop, or until nothing is left.

    coordinator: of a database server, where several workers execute, each by its name; why_not: says why a
    testbed must not be used. Raises Busy, RequestError (a worker of this name lives), InfrastructureError
    when the disk is full, or when this process counts as dead.
    """
    with ExitStack() as held:
        held.enter_context(lock(state_dir, QUEUE))
        held.enter_context(signals(stop))
        membership = None if coordinator is None else held.enter_context(join(coordinator, name))
        reserve = DiskReserve(state_dir)
        sharing = TestbedSharing(store, others, membership=membership, why_not=why_not)
        looked = float("-inf")
        try:
            if coordinator is None:
                waiting.recover(store, state_dir)
            while not (stop.is_set() or _is_lost(membership)):
                if coordinator is not None and time.monotonic() > looked + _RECOVER_SECONDS:
                    requeue_unleased(store, coordinator)
                    looked = time.monotonic()
                sharing.share()
                if until_idle and sharing.is_idle:
                    return
                sharing.wait(_POLL_SECONDS)
                if reserve.is_full():
                    raise reserve.error()
            if membership is not None and membership.is_lost:
                raise membership.error()
        finally:
            sharing.end(_SHUTDOWN_SECONDS)
            reserve.release()


def _is_lost(membership: Membership | None) -> bool:
    return membership is not None and membership.is_lost


def _tell_end(own: BisectionRun, store: Store, full: InfrastructureError | None) -> None:
    """Write down how the bisection ended without a conclusion, and raise that. full: the disk's error."""
    status = store.status(own.id)
    if status == "done":
        return
    error = full or own.error
    if full is None and status == "cancelled":
        raise Interrupted(f"the bisection '{own.id}' was cancelled")
    if error is None or (full is None and own.stop.is_set()):
        store.set_status(own.id, "interrupted", expected=TO_EXECUTE)
        how = "paused" if status == "paused" else "interrupted"
        text = f"the bisection '{own.id}' is {how}; nothing is lost"
        raise Interrupted(text, cure=f"perfbisect resume {own.id}")
    _record_failure(store, own.id)
    error.cure = error.cure or "mend the cause"
    raise error


@contextmanager
def _resumable(bisection: str) -> Iterator[None]:
    """Let the cure of whatever breaks end with the command that goes on."""
    try:
        yield
    except InfrastructureError as error:
        if "perfbisect resume" not in error.cure:
            error.cure = "; then: ".join(filter(None, (error.cure, f"perfbisect resume {bisection}")))
        raise


def _record_failure(store: Store, bisection: str) -> None:
    """Write down that a bisection failed. Where the store has failed itself, it must not hide the reason."""
    with contextlib.suppress(InfrastructureError):
        store.set_status(bisection, "failed", expected=TO_EXECUTE)
