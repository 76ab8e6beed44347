"""A store without a database: for tests, and for a planner tried without a kernel."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bisector.errors import NotFound, RequestError, nearest
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.leases import Lease
from bisector.model.live_boots import live_boots
from bisector.model.records import Booted, Built, Ran, Record
from bisector.model.stored_bisection import ENDED, Action, Progress, Stored, Summary, left_of, summary_of
from bisector.store_ports import Coordinator


@dataclass
class _Kept:
    """One bisection in a MemoryStore."""

    stored: Stored
    changed: float
    events: list[tuple[int, Record | Decision]] = field(default_factory=list)
    decided: float | None = None
    trials: dict[str, tuple[str, Measure]] = field(default_factory=dict)  # testbed -> executor, trial
    numbered: int = 0
    building: bool = False

    def add(self, event: Record | Decision) -> int:
        """Add an event; return its number."""
        self.events.append((len(self.events) + 1, event))
        if isinstance(event, Measure | Conclusion):
            self.decided, self.building = time.time(), False
        return len(self.events)

    def progress(self) -> Progress:
        """Return how far it is."""
        booted = [e.testbed for _, e in self.events if isinstance(e, Booted) and e.ok]
        measured = tuple(sorted({*booted}))
        decisions = [e for _, e in self.events if isinstance(e, Measure | Conclusion)]
        last = decisions[-1] if decisions else None
        live = tuple(sorted({*live_boots(e for _, e in self.events).values()}))
        left = None if last is None else left_of(last)
        return Progress(len(booted), live, left, self.decided, measured, self.building)


class MemoryStore:
    """store_ports.Store that forgets everything with its process."""

    def __init__(self, coordinator: Coordinator | None = None) -> None:
        """coordinator: knows the leases of `fenced`."""
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.RLock()
        self._coordinator = coordinator
        self._lease: Lease | None = None

    def fenced(self, lease: Lease) -> MemoryStore:
        """Return this store for the holder of a lease: it refuses to write once the lease is lost."""
        view = copy.copy(self)
        view._lease = lease
        return view

    def create(self, stored: Stored, events: Sequence[Record | Decision] = ()) -> None:
        """Add a bisection, with what happened in it elsewhere. Raises RequestError if the id exists."""
        with self._lock:
            if stored.id in self._kept:
                raise RequestError(f"the bisection '{stored.id}' exists already")
            kept = self._kept[stored.id] = _Kept(stored, time.time())
            for event in events:
                kept.add(event)

    def load(self, bisection: str) -> Stored:
        """Return one bisection. Raises RequestError naming the nearest one that exists."""
        return self._one(bisection).stored

    def list(
        self, beginning: str = "", limit: int | None = None, statuses: Collection[str] = (), since: float = 0
    ) -> Sequence[Summary]:
        """Return summaries, newest first.

        beginning: of the ids; limit: so many, by default all; statuses: those alone, by default all;
        since: changed at this time or later.
        """
        found = [
            summary_of(kept.stored, kept.changed, kept.progress())
            for id, kept in self._kept.items()
            if id.startswith(beginning) and (not statuses or kept.stored.status in statuses)
            if kept.changed >= since
        ]
        return sorted(found, key=lambda s: -s.created)[:limit]

    def append(self, bisection: str, record: Record) -> int:
        """Add a record; return its sequence number."""
        return self._add(bisection, record)

    def append_while_open(self, bisection: str, record: Record) -> int | None:
        """Add a record; None where the bisection is over, or its last decision is its end."""
        with self._lock:
            concluded = [isinstance(decision, Conclusion) for _, decision in self.decisions(bisection)]
            over = self.status(bisection) in ENDED or any(concluded[-1:])
            return None if over else self._add(bisection, record)

    def records(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Record]]:
        """Return (sequence number, record), oldest first; only those with a number above `after`."""
        events = self._one(bisection).events[after:]
        return [(n, event) for n, event in events if not isinstance(event, Measure | Conclusion)]

    def decide(self, bisection: str, decision: Decision) -> int:
        """Keep what the planner decided, with its reason; return its sequence number."""
        return self._add(bisection, decision)

    def decisions(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Decision]]:
        """Return (sequence number, decision) as `records` does; numbers are shared with it."""
        events = self._one(bisection).events
        return [(n, event) for n, event in events if n > after and isinstance(event, Measure | Conclusion)]

    def begin_trial(self, bisection: str, testbed: str, trial: Measure, *, seen: int) -> int | None:
        """Keep a decision and that its trial is under way; None where another one was made after `seen`."""
        with self._lock:
            if any(number > seen for number, _ in self.decisions(bisection)):
                return None
            number = self._add(bisection, trial)
            self._one(bisection).trials[testbed] = (
                ("" if self._lease is None else self._lease.executor),
                trial,
            )
            return number

    def end_trial(self, bisection: str, testbed: str) -> None:
        """Take note that the trial of a testbed is over."""
        with self._lock:
            self._check_lease()
            self._one(bisection).trials.pop(testbed, None)

    def trials(self, bisection: str) -> tuple[int, Mapping[str, Measure]]:
        """Return the number of the last event, and the trials under way, by testbed."""
        with self._lock:
            kept = self._one(bisection)
            known = () if self._coordinator is None else self._coordinator.executors()
            living = {"", *(one.id for one in known if not one.fenced)}
            return len(kept.events), {t: trial for t, (by, trial) in kept.trials.items() if by in living}

    def trials_of_others(self, executor: str) -> Sequence[tuple[str, str]]:
        """Return (bisection, testbed) of the trials under way in other processes than an executor."""
        with self._lock:
            trials = [(name, testbed) for name in self._kept for testbed in self.trials(name)[1]]
            return [(name, t) for name, t in trials if self._kept[name].trials[t][0] != executor]

    def note_building(self, bisection: str, building: bool) -> None:
        """Take note whether a kernel is built for a bisection that has left its testbed."""
        with self._lock:
            if bisection in self._kept:
                self._kept[bisection].building = building

    def conclude(self, bisection: str, conclusion: Conclusion, *, seen: int) -> int | None:
        """Keep the end of a search; None where a trial is under way, or something was recorded since."""
        with self._lock:
            last, under_way = self.trials(bisection)
            return None if under_way or last != seen else self._add(bisection, conclusion)

    def number_boot(self, bisection: str, at_least: int) -> int:
        """Return a number that no boot of the bisection had."""
        with self._lock:
            self._check_lease()
            kept = self._one(bisection)
            kept.numbered = max(kept.numbered + 1, at_least)
            return kept.numbered

    def _add(self, bisection: str, event: Record | Decision) -> int:
        with self._lock:
            self._check_lease()
            return self._one(bisection).add(event)

    def _check_lease(self) -> None:
        if self._lease is not None:
            assert self._coordinator is not None, "a lease comes from a coordinator"
            self._coordinator.check(self._lease)

    def seconds_spent(self, bisection: str) -> Mapping[str, float]:
        """Return the seconds of all records that have any, by the name of their type."""
        spent: dict[str, float] = {}
        for _, record in self.records(bisection):
            if isinstance(record, Built | Booted | Ran):
                spent[type(record).__name__] = spent.get(type(record).__name__, 0.0) + record.seconds
        return spent

    def status(self, bisection: str) -> str:
        """Return the status alone. Raises RequestError for an unknown id."""
        return self._one(bisection).stored.status

    def set_status(
        self,
        bisection: str,
        status: str,
        conclusion: Conclusion | None = None,
        *,
        expected: Collection[str] = (),
        action: Action | None = None,
    ) -> bool:
        """Change the status, from one that is expected; return whether it was. Raises RequestError."""
        with self._lock:
            self._check_lease()
            kept = self._one(bisection)
            if expected and kept.stored.status not in expected:
                return False
            kept.changed = time.time()
            kept.stored = replace(
                kept.stored,
                status=status,
                conclusion=conclusion if conclusion is not None else kept.stored.conclusion,
                action=replace(action, at=time.time()) if action is not None else kept.stored.action,
            )
            return True

    def set_priority(self, bisection: str, priority: int, action: Action) -> None:
        """Change the priority. Raises RequestError for an unknown id."""
        with self._lock:
            kept = self._one(bisection)
            kept.stored = replace(kept.stored, priority=priority, action=replace(action, at=time.time()))

    def remove(self, bisection: str) -> None:
        """Forget a bisection with all its records. Raises RequestError for an unknown id."""
        with self._lock:
            self._one(bisection)
            del self._kept[bisection]

    def give_back(self) -> int:
        """Return 0: there is no file."""
        return 0

    def _one(self, bisection: str) -> _Kept:
        if bisection not in self._kept:
            raise NotFound(f"there is no bisection '{bisection}'{nearest(bisection, self._kept)}")
        return self._kept[bisection]
