"""How many requests may do one thing at once: whoever comes while all slots are taken is asked to come again.

Nobody waits here: a request that waits holds one of the threads that answer all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Lock

from bisector.interfaces.web.problems import Refused

_RETRY_SECONDS = 5
"""When a refused client may ask again: chosen, since what holds a slot takes seconds."""


@dataclass
class Slots:
    """busy: with what, in words, while all are taken; most: at once; each: of them for one user."""

    busy: str
    most: int
    each: int
    _taken: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def one(self, user: str) -> Iterator[None]:
        """Hold a slot. Raises Refused: the user has all of theirs, or there is none left."""
        with self._lock:
            if self._taken[user] >= self.each or self._taken.total() >= self.most:
                raise self.refusal()
            self._taken[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[user] -= 1
                self._taken += Counter()  # forgets users without a slot

    def refusal(self) -> Refused:
        """Return the error of a request that comes too early."""
        return Refused(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"the server is busy with {self.busy}",
            cure="ask again in a few seconds",
            headers={"Retry-After": str(_RETRY_SECONDS)},
        )
