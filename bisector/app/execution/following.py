"""Watching a bisection that another process executes, and waiting there for its turn."""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bisector.engine.events import Event, OnEvent, decision_event, run_event
from bisector.engine.membership import START, bisection_of
from bisector.engine.state_lock import QUEUE, Holder, find_holder
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.decisions import Conclusion, Measure
from bisector.model.format import count
from bisector.model.goal import Metric
from bisector.model.leases import HEARTBEAT_TTL_SECONDS
from bisector.model.records import Booted, Built, Ran, Record, RunFailed
from bisector.model.stored_bisection import TO_EXECUTE, Stored, Summary, taken_up_from
from bisector.schemas.request import read_accepted
from bisector.store_ports import Coordinator, Store

_FOLLOW_SECONDS = 0.5
"""Between two looks at what another process records: chosen, people take that for at once."""


class Follower:
    """Reports what happens in a bisection, from its creation on."""

    def __init__(self, store: Store, bisection: str, on_event: OnEvent) -> None:
        """on_event: who listens."""
        self._store, self._id, self._on_event = store, bisection, on_event
        self._tally: Counter[str] = Counter()
        self._commits: dict[str, int] = {}
        self._seen = self._told = 0
        self._first = True

    def poll(self) -> None:
        """Report what was recorded since the last call; the first call reports only the last decision."""
        for number, record in self._store.records(self._id, after=self._seen):
            self._seen = number
            self._tally[type(record).__name__] += 1
            event = self._event(record)
            if event is not None and not self._first:
                self._on_event(event)
        decisions = self._store.decisions(self._id, after=self._told)
        for number, decision in decisions[-1:] if self._first else decisions:
            self._told = number
            if isinstance(decision, Measure):
                self._on_event(self._with_totals(decision_event(decision, "another process measures")))
        self._first = False

    def _event(self, record: Record) -> Event | None:
        """Return the event for a record of another process, None for one that is not shown."""
        commits = self._commits
        match record:
            case Built():
                text = "the kernel is built" if record.ok else record.failure
                event = Event("build", text, record.commit, seconds=record.seconds)
            case Booted():
                commits[record.boot] = record.commit
                text = "booted" if record.ok else record.failure
                event = Event("boot", text, record.commit, seconds=record.seconds)
            case Ran():
                event = run_event(record, self._metric, commits.get(record.boot))
            case RunFailed():
                event = Event("trouble", record.failure, commits.get(record.boot))
            case _:
                return None
        return self._with_totals(event)

    @functools.cached_property
    def _metric(self) -> Metric:
        return read_accepted(self._store.load(self._id).request).the_goal().metric

    def _with_totals(self, event: Event) -> Event:
        """Return the event with the numbers of records so far."""
        tally = self._tally
        return replace(event, runs=tally["Ran"], boots=tally["Booted"], builds=tally["Built"])


def follow(
    store: Store,
    bisection: str,
    running: Callable[[], bool],
    on_event: OnEvent,
    where: Callable[[], str] = lambda: "",
) -> Conclusion:
    """Watch a bisection that another process runs until it ends, and report what happens from now on.

    where: tells its place, an empty text once it has none. Raises InfrastructureError if it stops without a
    conclusion.
    """
    follower, told = Follower(store, bisection, on_event), ""
    while True:
        alive = running()  # asked before reading, so that nothing written just before the end is missed
        if alive and (now := where()) and now != told:
            told = now
            on_event(Event("note", now))
        follower.poll()
        if not alive:
            return concluded(store.load(bisection))
        time.sleep(_FOLLOW_SECONDS)


class Executors:
    """Who executes what, as it is when this is made.

    coordinator: of a database server, None with a state file.
    """

    def __init__(self, state_dir: Path, coordinator: Coordinator | None) -> None:
        self._here = find_holder(state_dir)
        self._coordinator = coordinator
        self._by_bisection: dict[str, str] = {}
        self.workers: tuple[str, ...] = ()
        """Names of those that live, on a database server."""
        if coordinator is not None:
            known = coordinator.executors()
            living = {e.id: e.name for e in known if not e.fenced and e.silent < HEARTBEAT_TTL_SECONDS}
            self.workers = tuple(sorted(name for name in living.values() if not name.startswith(START)))
            for lease in coordinator.leases():
                if (bisection := bisection_of(lease)) is not None and lease.executor in living:
                    self._by_bisection.setdefault(bisection, living[lease.executor])

    def find(self, bisection: str, serves: Callable[[str], bool] = lambda worker: True) -> Holder | None:
        """Return who executes a bisection, or would if it were queued.

        serves: whether a worker has testbeds of it.
        """
        if bisection in self._by_bisection:
            return Holder(_called(self._by_bisection[bisection]), bisection, "on this database")
        able = [worker for worker in self.workers if serves(worker)]
        return Holder(_called(able[0]), QUEUE, "on this database") if able else self._here

    def have_leased(self, bisection: str) -> bool:
        """Return whether one that lives has a lease of a bisection: until its last trial there has ended."""
        return bisection in self._by_bisection

    def is_executed(self, bisection: str, status: str) -> bool:
        """Return whether a bisection of this status is executed now, rather than left by a killed process."""
        if status != "running":
            return False
        if self._coordinator is None:
            return self._here is not None and self._here.executes
        return self.have_leased(bisection)


def find_executor(
    state_dir: Path,
    coordinator: Coordinator | None,
    bisection: str,
    serves: Callable[[str], bool],
) -> Holder | None:
    """Return who executes a bisection, or would if it were queued. serves: as in `Executors.find`."""
    return Executors(state_dir, coordinator).find(bisection, serves)


def _called(name: str) -> str:
    return name if name.startswith(START) else f"worker '{name}'"


def wait_for_turn(
    store: Store,
    find: Callable[[], Holder | None],
    stored: Stored,
    on_event: OnEvent,
    stop: threading.Event,
    is_ours: bool,
) -> Conclusion | None:
    """Queue a bisection for the process that executes what is queued here, and watch it. find: that process.

    is_ours: whether it ends when we are told to stop, since nobody else waits for it. Returns its conclusion,
    or None once no other process executes and we may. Raises Interrupted when told to stop,
    InfrastructureError where it ends without a conclusion.
    """
    name = stored.id
    follower = Follower(store, name, on_event)
    told = None
    store.set_status(name, "queued", expected=taken_up_from(stored.status))
    while True:
        holder = find()
        where = told if holder is None else place(store, name, holder)
        if where and where != told:
            told = where
            on_event(Event("note", where))
        follower.poll()
        if store.status(name) not in TO_EXECUTE:
            return concluded(store.load(name))
        if holder is None:
            return None
        if stop.wait(_FOLLOW_SECONDS):
            if is_ours and holder.doing != name:
                store.set_status(name, "interrupted", expected=TO_EXECUTE)
            raise Interrupted(
                f"the bisection '{name}' is no longer watched; nothing is lost",
                cure=f"perfbisect resume {name}",
            )


def place(store: Store, name: str, holder: Holder | None) -> str:
    """Return where a bisection is in the queue, in words. holder: who executes it, or would."""
    return place_among(store.list(statuses=TO_EXECUTE), name, holder)


def place_among(queued: Sequence[Summary], name: str, holder: Holder | None) -> str:
    """Return where a bisection is, in words, among those that are queued or run; holder: as for `place`.

    An empty text says that it is not among them any more: it has ended since it was last looked at.
    """
    others = {one.id: one for one in queued}
    own = others.pop(name, None)
    if own is None:
        return ""
    if holder is None:
        return "queued: nobody executes it yet; 'perfbisect worker' does"
    if holder.doing == name:
        return f"{holder.who} runs it; watching"
    if not holder.executes:
        return f"queued: {holder}"
    sharing = [one for one in others.values() if set(one.testbeds) & set(own.testbeds)]
    urgent = sum(one.priority < own.priority for one in sharing)
    equal = sum(one.priority == own.priority for one in sharing)
    before = f"{count(urgent, 'more urgent one')} before it, " if urgent else ""
    return f"{own.status}: {holder}; {before}{count(equal, 'other')} of its priority on the same testbeds"


def concluded(stored: Stored) -> Conclusion:
    """Return the conclusion of a bisection. Raises InfrastructureError: it stopped without one."""
    if stored.conclusion is None:
        how, why, action = stored.status, "", stored.action
        if action is not None and action.what == stored.status:  # not that of somebody who resumed it before
            how += "" if how == "failed" else f" by {action.by}"
            why = f": {action.why}" if action.why else ""
        raise InfrastructureError(
            f"the bisection '{stored.id}' stopped without a conclusion ({how}){why}",
            cure="'perfbisect start' with its request begins anew"
            if stored.status == "cancelled"
            else f"perfbisect resume {stored.id}",
        )
    return stored.conclusion
