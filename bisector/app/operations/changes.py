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
"""Of a revision as others see it: it says nothing of what the lab has."""


def read_revision(wiring: Wiring) -> str:
    """Return a short text that is another one when what lists show has changed."""
    return hashlib.sha256(sql_revision.read_revision(wiring.database).encode()).hexdigest()[:_DIGITS]


@dataclass
class Changes:
    """The revision for many who ask often.

    read: looks at the database; seconds: how old an answer may be that another one has got.
    """

    read: Callable[[], str]
    seconds: float = 0.9
    clock: Callable[[], float] = time.monotonic
    _known: tuple[str, float] | None = None
    _lock: Lock = field(default_factory=Lock)

    def latest(self) -> str:
        """Return the revision of a moment ago."""
        with self._lock:
            now = self.clock()
            if self._known is None or now - self._known[1] >= self.seconds:
                self._known = (self.read(), now)
            return self._known[0]

    def now(self) -> str:
        """Return the revision of this moment: what a page shows afterwards is of it, or later."""
        found = self.read()
        with self._lock:
            self._known = (found, self.clock())
        return found
