"""What happens to a bisection, look by look, for somebody who watches it from elsewhere."""

from __future__ import annotations

from dataclasses import asdict

from bisector.app.execution.following import Executors, Follower, concluded, place
from bisector.app.load_report import find_bisection
from bisector.app.operations.operations import Values
from bisector.app.watching import watch_bisection
from bisector.app.wiring import Wiring
from bisector.engine.events import Event
from bisector.model.stored_bisection import TO_EXECUTE
from bisector.schemas.request import read_accepted


class EventStream:
    """The events of one bisection, as `watch` shows them."""

    def __init__(self, wiring: Wiring, identity: str | None) -> None:
        """Raises RequestError: there is none, or nobody executes it."""
        stored = find_bisection(wiring, identity)
        watch_bisection.require_watchable(stored)
        self.id = stored.id
        self._store = wiring.store
        self._wiring, self._told = wiring, ""
        self._events: list[Event] = []
        self._follower = Follower(wiring.store, stored.id, self._events.append)
        self._label = watch_bisection.labels(wiring, stored, read_accepted(stored.request))

    def look(self) -> tuple[list[Values], bool]:
        """Return what has happened since the last look, and whether more may come.

        Raises InfrastructureError where the bisection has stopped without a conclusion.
        """
        alive = self._store.status(self.id) in TO_EXECUTE  # asked before reading: nothing is missed
        if alive:
            self._tell_place()
        self._follower.look()
        found = [self._values(event) for event in self._events]
        self._events.clear()
        if not alive and not found:
            concluded(self._store.load(self.id))
        return found, alive or bool(found)

    def _tell_place(self) -> None:
        """Tell where the bisection is in the queue, where that has changed."""
        executors = Executors(self._wiring.settings.state_dir, self._wiring.shared_coordinator)
        where = place(self._store, self.id, executors.find(self.id))
        if where and where != self._told:
            self._told = where
            self._events.append(Event("note", where))

    def _values(self, event: Event) -> Values:
        commit = event.commit
        return {**asdict(event), "label": None if commit is None else self._label(commit)}
