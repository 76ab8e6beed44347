"""Whether what lists show has changed: one look at the database for all who follow."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from bisector.adapters.store.web import sql_revision
from bisector.app.wiring import Wiring

_DIGITS = 16
"""Length of a revision as clients see it: hashed, so that it reveals nothing about the lab."""


def read_revision(wiring: Wiring) -> str:
    """Return a short text that changes whenever something changes that lists show."""
    return hashlib.sha256(sql_revision.read_revision(wiring.database).encode()).hexdigest()[:_DIGITS]


@dataclass
class Changes:
    """The revision for many clients that ask often.

    read: looks at the database; seconds: how old an answer may be that was found for another client.
    """

    read: Callable[[], str]
    seconds: float = 0.9
    clock: Callable[[], float] = time.monotonic
    _known: tuple[str, float] | None = None
    _lock: Lock = field(default_factory=Lock)

    def latest(self) -> str:
        """Return the revision, which may be `seconds` old."""
        with self._lock:
            now = self.clock()
            if self._known is None or now - self._known[1] >= self.seconds:
                self._known = (self.read(), now)
            return self._known[0]

    def now(self) -> str:
        """Return the revision as of now; what a page reads afterwards is of this revision or a later one."""
        found = self.read()
        with self._lock:
            self._known = (found, self.clock())
        return found
