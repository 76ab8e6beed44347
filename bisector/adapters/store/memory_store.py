"""A store without a file: for tests, and for a planner tried without a kernel."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bisector.errors import RequestError, nearest
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.records import Record
from bisector.model.stored_bisection import Stored, Summary, summary_of


@dataclass
class _Kept:
    """One bisection in a MemoryStore."""

    stored: Stored
    changed: float
    records: list[tuple[int, Record]] = field(default_factory=list)
    decisions: list[tuple[int, Decision]] = field(default_factory=list)


class MemoryStore:
    """ports.Store that forgets everything with its process."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def create(self, stored: Stored, events: Sequence[Record | Decision] = ()) -> None:
        """Add a bisection, with what happened in it elsewhere. Raises RequestError if the id exists."""
        with self._lock:
            if stored.id in self._kept:
                raise RequestError(f"the bisection '{stored.id}' exists already")
            kept = self._kept[stored.id] = _Kept(stored, time.time())
            for event in events:
                if isinstance(event, Measure | Conclusion):
                    kept.decisions.append((next(self._numbers), event))
                else:
                    kept.records.append((next(self._numbers), event))

    def load(self, bisection: str) -> Stored:
        """Return one bisection. Raises RequestError naming the nearest one that exists."""
        return self._one(bisection).stored

    def list(self, *, beginning: str = "", limit: int | None = None) -> Sequence[Summary]:
        """Return summaries, newest first. beginning: of the ids; limit: so many, by default all."""
        found = [summary_of(k.stored, k.changed) for id, k in self._kept.items() if id.startswith(beginning)]
        return sorted(found, key=lambda s: -s.created)[:limit]

    def append(self, bisection: str, record: Record) -> int:
        """Add a record; return its sequence number."""
        with self._lock:
            number = next(self._numbers)
            self._one(bisection).records.append((number, record))
            return number

    def records(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Record]]:
        """Return (sequence number, record), oldest first; only those with a number above `after`."""
        with self._lock:
            return [row for row in self._one(bisection).records if row[0] > after]

    def decide(self, bisection: str, decision: Decision) -> int:
        """Keep what the planner decided, with its reason; return its sequence number."""
        with self._lock:
            number = next(self._numbers)
            self._one(bisection).decisions.append((number, decision))
            return number

    def decisions(self, bisection: str) -> Sequence[tuple[int, Decision]]:
        """Return (sequence number, decision), oldest first; numbers are shared with `records`."""
        return list(self._one(bisection).decisions)

    def status(self, bisection: str) -> str:
        """Return the status alone. Raises RequestError for an unknown id."""
        return self._one(bisection).stored.status

    def set_status(self, bisection: str, status: str, conclusion: Conclusion | None = None) -> None:
        """Change the status and, if given, the conclusion. Raises RequestError for an unknown id."""
        kept = self._one(bisection)
        kept.changed = time.time()
        kept.stored = replace(
            kept.stored,
            status=status,
            conclusion=conclusion if conclusion is not None else kept.stored.conclusion,
        )

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
            raise RequestError(f"there is no bisection '{bisection}'{nearest(bisection, self._kept)}")
        return self._kept[bisection]
