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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bisector.engine import waiting
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.chores import CHORES, Chores
from bisector.engine.disk_reserve import DiskReserve, remove_reserve
from bisector.engine.events import Event, OnEvent
from bisector.engine.machines.giving_back import give_back_left
from bisector.engine.membership import START, Membership, join, requeue_unleased
from bisector.engine.others import Others
from bisector.engine.services import Services
from bisector.engine.shares.hour_counter import HourCounter
from bisector.engine.sharing import TestbedSharing
from bisector.engine.state_lock import QUEUE, Busy, lock
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.stored_bisection import TO_EXECUTE, Stored, failure, taken_up_from
from bisector.schemas.request import read_accepted
from bisector.store_ports import Coordinator, Store

_POLL_SECONDS = 0.2
"""How soon Ctrl-C, a cancelled bisection and one that was queued are noticed."""
_SHUTDOWN_SECONDS = 30.0
"""How long builds and boots may take to end once their guests and children have; the process ends anyway."""

_RECOVER_SECONDS = 5.0
"""How often a worker looks for bisections whose executor has died: six times in the silence that shows it."""

WORKER = "worker"
"""What a worker tells about itself goes by this name, in the place of a bisection's id."""

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
        # Not in this thread: a signal in the middle of `stop.wait` finds the lock taken that `set` waits for.
        threading.Thread(target=stop.set, daemon=True).start()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def tidy(stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> None:
    """End and remove what was left by a process that was killed after it had written the conclusion.

    Its machines are given back, as `give_back_left` does. Nothing is touched while another process works in
    this state folder.
    """
    with contextlib.suppress(Busy), lock(services.state_dir, stored.id):
        services.tidy(services.folder(stored.id))
        remove_reserve(services.state_dir)
        give_back_left(stored.id, services, on_event, stop)


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
    with lock(services.state_dir, stored.id), _resumable(stored.id):
        while not _execute(stored, services, on_event, stop, others):
            services.stop.clear()  # set when the database was out of reach, which now answers again
        give_back_left(stored.id, services, on_event, stop)  # testbeds that this process was not given


def _execute(
    stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event, others: Others | None
) -> bool:
    """Run a bisection; return whether it has ended. If not, it is to be run again as a new executor."""
    with ExitStack() as held:
        membership, lease, store = None, None, services.store
        if services.coordinator is not None:
            name = f"{START}{socket.gethostname()}:{os.getpid()}"
            membership = held.enter_context(join(services.coordinator, name, services.state_dir))
            lease = membership.acquire_bisection(stored.id)
            if lease is None:
                raise Busy(None)
            store = store.fenced(lease)
        # Without those that the inventory has lost since.
        testbeds = [name for name in read_accepted(stored.request).testbeds if name in services.testbeds]
        own = BisectionRun(stored.id, lambda: (stored, services), on_event, services.stop, testbeds, lease)
        may_begin = (*TO_EXECUTE, *taken_up_from(stored.status))
        if not store.set_status(stored.id, "running", expected=may_begin):
            raise Interrupted(f"the bisection '{stored.id}' was {store.status(stored.id)}")
        reserve = DiskReserve(services.state_dir)
        sharing = TestbedSharing(services.store, others, own, membership, services.why_not, services.hours)
        full = ended = False
        chores = () if others is None else others.chores
        looked_after = Chores(chores, lambda text: on_event(Event("note", text)))
        looked_after.start()
        held.callback(looked_after.end)
        try:
            if membership is None:
                waiting.recover(store, services.state_dir, stored.id)
            while not (own.ended or full or stop.is_set()):
                sharing.share()
                sharing.wait(_POLL_SECONDS)
                full = reserve.is_full()
        except KeyboardInterrupt:
            stop.set()
        except BaseException as error:
            if _is_alone(membership, stored.id):
                _record_failure(store, stored.id, str(error) or type(error).__name__)
            raise
        finally:
            if stop.is_set():
                on_event(Event("note", _stopping(sharing.to_give_back())))
            ended = sharing.end(_SHUTDOWN_SECONDS / 6 if full else _SHUTDOWN_SECONDS)
            reserve.release()
        if membership is not None and membership.is_lost and not (stop.is_set() or full):
            if not ended:
                raise membership.error()
            on_event(Event("note", f"{membership.error().message}; going on"))
            return False
        alone = _is_alone(membership, stored.id)
        _tell_end(own, store, alone, stop.is_set(), reserve.error() if full else None)
        return True


def _stopping(machines: Sequence[str]) -> str:
    """Return what happens at a stop, and how long. machines: those that run a kernel under test."""
    waits = f"; it waits until {', '.join(machines)} {'is' if len(machines) == 1 else 'are'} given back"
    return f"stopping: guests and builds are ended{waits if machines else ''}"


def _is_alone(membership: Membership | None, bisection: str) -> bool:
    """Return whether no other process executes a bisection; False where that is unknown."""
    with contextlib.suppress(InfrastructureError):
        return membership is None or membership.executes_alone(bisection)
    return False


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
    hours: HourCounter | None = None,
    joined: Callable[[], object] = lambda: None,
) -> None:
    """Execute what is queued until asked to stop, or until nothing is left.

    Cut off from a database server it ends what it does, and goes on when the server answers again.
    coordinator: of a database server, where several workers execute, each by its name; why_not: says why a
    testbed must not be used; hours: counts who has testbeds; joined: called once no other worker of this name
    can be there. Raises Busy, RequestError (a worker of this name lives), what `joined` raises, and
    InfrastructureError when the disk is full, or when this process counts as dead and something that it did
    does not end.
    """
    with lock(state_dir, QUEUE), signals(stop):
        if coordinator is None:
            waiting.recover(store, state_dir)
            sharing = TestbedSharing(store, others, why_not=why_not, hours=hours)
            _serve(sharing, others, state_dir, stop, until_idle)
            return
        recover = partial(requeue_unleased, store, coordinator)
        lost = True
        while lost and not stop.is_set():
            with join(coordinator, name, state_dir) as membership:
                joined()
                sharing = TestbedSharing(store, others, membership=membership, why_not=why_not, hours=hours)
                ended = _serve(sharing, others, state_dir, stop, until_idle, recover)
                lost = membership.is_lost
                if lost and not ended:
                    raise membership.error()
                if lost and not stop.is_set():
                    why = f"{membership.error().message}; what was under way is given up"
                    others.tell(WORKER, Event("trouble", f"{why}, and it goes on as a new one"))


def _serve(
    sharing: TestbedSharing,
    others: Others,
    state_dir: Path,
    stop: threading.Event,
    until_idle: bool,
    recover: Callable[[], object] = lambda: None,
) -> bool:
    """Execute until asked to stop, or lost, or idle; return whether all that was begun has ended.

    recover: called now and then. Raises InfrastructureError when the disk is full.
    """
    chores = Chores(others.chores, lambda text: others.tell(CHORES, Event("trouble", text)))
    reserve, looked, ended, let_go = DiskReserve(state_dir), float("-inf"), False, 0
    chores.start()
    try:
        while not (stop.is_set() or sharing.is_lost):
            if time.monotonic() > looked + _RECOVER_SECONDS:
                recover()
                looked = time.monotonic()
            sharing.share()
            if sharing.let_go > let_go:
                let_go = sharing.let_go
                chores.hurry()  # what has just ended may be a night
            if until_idle and sharing.is_idle:
                chores.do_all()  # what has just ended may be followed by another bisection
                sharing.share()
                if sharing.is_idle:
                    break
            sharing.wait(_POLL_SECONDS)
            if reserve.is_full():
                raise reserve.error()
    finally:
        chores.end()
        ended = sharing.end(_SHUTDOWN_SECONDS)
        reserve.release()
    return ended


def _tell_end(
    own: BisectionRun, store: Store, alone: bool, stopped: bool, full: InfrastructureError | None
) -> None:
    """Write down how the bisection ended without a conclusion, and raise that.

    alone: nobody else goes on with it; stopped: on request; full: the disk's error.
    """
    status = store.status(own.id)
    if status == "done":
        return
    error = full or own.error
    if full is None and status == "cancelled":
        raise Interrupted(f"the bisection '{own.id}' was cancelled")
    if (error is None or (full is None and stopped)) and not alone and status in TO_EXECUTE:
        text = f"the bisection '{own.id}' goes on with other workers; it is no longer watched"
        raise Interrupted(text, cure=f"perfbisect watch {own.id}")
    if error is None or (full is None and stopped):
        store.set_status(own.id, "interrupted", expected=TO_EXECUTE)
        how = "paused" if status == "paused" else "interrupted"
        text = f"the bisection '{own.id}' is {how}; nothing is lost"
        raise Interrupted(text, cure=f"perfbisect resume {own.id}")
    if alone:
        _record_failure(store, own.id, error.message)
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


def _record_failure(store: Store, bisection: str, why: str) -> None:
    """Write down that a bisection failed. Where the store has failed itself, it must not hide the reason."""
    with contextlib.suppress(InfrastructureError):
        store.set_status(bisection, "failed", expected=TO_EXECUTE, action=failure(why))
