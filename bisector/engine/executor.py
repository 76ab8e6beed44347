"""The one executor of a state folder: shares its testbeds among the bisections that are to be executed.

The process that holds the folder's lock executes its own bisection and those that others have queued there.
Nothing is kept beside the records and statuses in the store: an executor that dies is replaced by any other.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bisector.engine import waiting
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.disk_reserve import DiskReserve, remove_reserve
from bisector.engine.events import Event, OnEvent
from bisector.engine.schedule import Claimant, choose, should_yield
from bisector.engine.services import Services
from bisector.engine.state_lock import QUEUE, Busy, lock
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError
from bisector.model.stored_bisection import TO_EXECUTE, Stored
from bisector.store_ports import Store


@dataclass(frozen=True, slots=True)
class Others:
    """How bisections are executed that somebody else began.

    open: makes their adapters, or raises PerfbisectError; tell: is given their events, with the id; ended:
    called when one is let go of.
    """

    open: Callable[[Stored, threading.Event], Services]
    tell: Callable[[str, Event], None]
    ended: Callable[[str], object]


_POLL_SECONDS = 0.2
"""How soon Ctrl-C, a cancelled bisection and one that was queued are noticed."""
_SHUTDOWN_SECONDS = 30.0
"""Timeout of a build or boot to end after its guest and children ended; then the process ends anyway."""

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
    with lock(services.state_dir, stored.id), signals(stop), _resumable(stored.id):
        own = BisectionRun(stored, lambda: services, on_event, stop)
        services.store.set_status(stored.id, "running")
        reserve = DiskReserve(services.state_dir)
        executor = _Executor(services.store, others, own)
        full = False
        try:
            waiting.recover(services.store, services.state_dir, stored.id)
            while not (own.ended or full):
                executor.share_testbeds()
                executor.wait(_POLL_SECONDS)
                full = reserve.is_full()
        except KeyboardInterrupt:
            stop.set()
        except BaseException:
            _record_failure(services, stored.id)
            raise
        finally:
            executor.end(_SHUTDOWN_SECONDS / 6 if full else _SHUTDOWN_SECONDS)
            reserve.release()
        _tell_end(own, services, reserve.error() if full else None)


def serve(store: Store, state_dir: Path, others: Others, stop: threading.Event, *, until_idle: bool) -> None:
    """Execute what is queued in a state folder until told to stop, or until nothing is left.

    Raises Busy, or InfrastructureError when the disk is full.
    """
    with lock(state_dir, QUEUE), signals(stop):
        reserve = DiskReserve(state_dir)
        executor = _Executor(store, others)
        try:
            waiting.recover(store, state_dir)
            while not stop.is_set():
                executor.share_testbeds()
                if until_idle and executor.is_idle:
                    return
                executor.wait(_POLL_SECONDS)
                if reserve.is_full():
                    raise reserve.error()
        finally:
            executor.end(_SHUTDOWN_SECONDS)
            reserve.release()


def _tell_end(own: BisectionRun, services: Services, full: InfrastructureError | None) -> None:
    """Write down how the bisection ended without a conclusion, and raise that. full: the disk's error."""
    status = services.store.status(own.id)
    if status == "done":
        return
    error = full or own.error
    if full is None and status == "cancelled":
        raise Interrupted(f"the bisection '{own.id}' was cancelled")
    if error is None or (full is None and own.stop.is_set()):
        if status in TO_EXECUTE:
            services.store.set_status(own.id, "interrupted")
        how = "paused" if status == "paused" else "interrupted"
        text = f"the bisection '{own.id}' is {how}; nothing is lost"
        raise Interrupted(text, cure=f"perfbisect resume {own.id}")
    _record_failure(services, own.id)
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


def _record_failure(services: Services, bisection: str) -> None:
    """Write down that a bisection failed. Where the store has failed itself, it must not hide the reason."""
    with contextlib.suppress(InfrastructureError):
        services.store.set_status(bisection, "failed")


class _Executor:
    """The bisections that this process executes, and who has which testbed. Used by one thread."""

    def __init__(self, store: Store, others: Others | None, own: BisectionRun | None = None) -> None:
        self._own = own
        self._store = store
        self._others = others
        self._runs = {} if own is None else {own.id: own}
        self._visits: dict[str, tuple[BisectionRun, threading.Thread]] = {}  # by testbed
        self._served: dict[tuple[str, str], float] = {}  # (testbed, bisection) -> when its last visit ended
        self._changed = threading.Event()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to execute."""
        return not self._runs

    def share_testbeds(self) -> None:
        """Take up what was queued, let go of what was cancelled, give each free testbed its next visit."""
        self._follow_statuses()
        for testbed, (run, thread) in list(self._visits.items()):
            if not thread.is_alive():
                self._served[testbed, run.id] = time.monotonic()
                del self._visits[testbed]
        for run in [run for run in self._runs.values() if run.ended and run is not self._own]:
            if not any(visitor is run for visitor, _ in self._visits.values()):
                self._let_go(run)
        for testbed in sorted({name for run in self._runs.values() for name in run.testbeds}):
            if testbed not in self._visits:
                chosen = choose(self._claimants(testbed))
                if chosen is not None:
                    self._begin_visit(self._runs[chosen], testbed)

    def wait(self, seconds: float) -> None:
        """Wait until a visit has ended, so long at most."""
        self._changed.wait(seconds)
        self._changed.clear()

    def end(self, seconds: float) -> None:
        """End all visits and wait for them, so long at most; the others' bisections are queued again."""
        deadline = time.monotonic() + seconds
        for run in self._runs.values():
            if run is not self._own or not run.ended:
                run.stop.set()
        while any(thread.is_alive() for _, thread in self._visits.values()) and time.monotonic() < deadline:
            for run in self._runs.values():
                run.close()  # repeatedly: a guest may still start during shutdown
            self.wait(_POLL_SECONDS)
        for run in list(self._runs.values()):
            run.close()
            if run is not self._own:
                with contextlib.suppress(PerfbisectError):
                    self._let_go(run)

    def _begin_visit(self, run: BisectionRun, testbed: str) -> None:
        def visit() -> None:
            run.visit(testbed, lambda: self._is_wanted(run, testbed))
            self._changed.set()

        thread = threading.Thread(target=visit, daemon=True, name=f"visit-{testbed}")
        self._visits[testbed] = run, thread
        thread.start()

    def _claimants(self, testbed: str, but: str = "") -> list[Claimant]:
        return [
            self._claimant(run, testbed)
            for run in list(self._runs.values())
            if testbed in run.testbeds and run.id != but and not run.ended
        ]

    def _claimant(self, run: BisectionRun, testbed: str) -> Claimant:
        using = sum(visitor is run for visitor, _ in list(self._visits.values()))
        served = self._served.get((testbed, run.id), 0.0)
        return Claimant(run.id, priority=1, using=using, served=served, created=run.created)

    def _is_wanted(self, run: BisectionRun, testbed: str) -> bool:
        return should_yield(self._claimant(run, testbed), self._claimants(testbed, but=run.id))

    def _follow_statuses(self) -> None:
        statuses = {one.id: one.status for one in self._store.list(statuses=TO_EXECUTE)}
        for run in self._runs.values():
            if run.id not in statuses and not run.ended:
                run.stop.set()
                run.close()
        for name in reversed(statuses):  # the oldest first
            if self._others is not None and name not in self._runs:
                self._runs[name] = self._take_up(name, self._others)

    def _take_up(self, name: str, others: Others) -> BisectionRun:
        stored, stop = self._store.load(name), threading.Event()
        self._note(f"the bisection '{name}' shares the testbeds from now on")
        return BisectionRun(
            stored, lambda: others.open(stored, stop), lambda event: others.tell(name, event), stop
        )

    def _let_go(self, run: BisectionRun) -> None:
        """Forget a bisection of others: it is over, or waits for another executor."""
        self._runs.pop(run.id, None)
        if self._store.status(run.id) in TO_EXECUTE:
            self._store.set_status(run.id, "queued" if run.error is None else "failed")
        if run.error is not None:
            self._note(f"the bisection '{run.id}' failed: {run.error.message}")
        if self._others is not None:
            self._others.ended(run.id)

    def _note(self, text: str) -> None:
        if self._own is not None:
            self._own.note(text)
