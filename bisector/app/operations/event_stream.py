"""The events of a bisection for clients that poll them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from threading import Lock

from bisector.app.execution.following import Executors, Follower, concluded, place_among
from bisector.app.load_report import find_bisection
from bisector.app.operations.operations import Values
from bisector.app.watching import watch_bisection
from bisector.app.wiring import Wiring
from bisector.engine.events import Event
from bisector.model.stored_bisection import TO_EXECUTE, Summary
from bisector.schemas.request import read_accepted

_PLACE_SECONDS = 3.0
"""How long the lists of executors and of the queue are reused. They change at boots, which take longer."""


class Places:
    """Places of bisections in the queue, at most some seconds old, shared by all streams of a server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds."""
        self._clock, self._looked = clock, -math.inf
        self._lock = Lock()
        self._executors: Executors
        self._queued: Sequence[Summary] = ()

    def find(self, wiring: Wiring, bisection: str) -> str:
        """Return the place of a bisection in words; asks again for one that the last answer did not list."""
        with self._lock:
            is_old = self._clock() - self._looked >= _PLACE_SECONDS
            if is_old or all(one.id != bisection for one in self._queued):
                self._executors = Executors(wiring.settings.state_dir, wiring.shared_coordinator)
                self._queued = wiring.store.list(statuses=TO_EXECUTE)
                self._looked = self._clock()
            return place_among(self._queued, bisection, self._executors.find(bisection))


class EventStream:
    """The events of one bisection, as `watch` shows them."""

    def __init__(self, wiring: Wiring, identity: str | None, places: Places) -> None:
        """Raises RequestError: there is none, or nobody executes it."""
        stored = find_bisection(wiring, identity)
        watch_bisection.require_watchable(stored)
        self.id = stored.id
        self._store, self._places = wiring.store, places
        self._wiring, self._told = wiring, ""
        self._events: list[Event] = []
        self._follower = Follower(wiring.store, stored.id, self._events.append)
        self._label = watch_bisection.labels(wiring, stored, read_accepted(stored.request))

    def poll(self) -> tuple[list[Values], bool]:
        """Return what has happened since the last call, and whether more may come.

        Raises InfrastructureError where the bisection has stopped without a conclusion.
        """
        alive = self._store.status(self.id) in TO_EXECUTE  # before reading, so that no last event is missed
        if alive:
            self._tell_place()
        self._follower.poll()
        found = [self._values(event) for event in self._events]
        self._events.clear()
        if not alive and not found:
            concluded(self._store.load(self.id))
        return found, alive or bool(found)

    def _tell_place(self) -> None:
        """Add an event with the bisection's place in the queue if it has changed."""
        where = self._places.find(self._wiring, self.id)
        if where and where != self._told:
            self._told = where
            self._events.append(Event("note", where))

    def _values(self, event: Event) -> Values:
        commit = event.commit
        return {**asdict(event), "label": None if commit is None else self._label(commit)}
