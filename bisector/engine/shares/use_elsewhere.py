"""Use of testbeds by the other executors of a database: they are shared fairly over all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bisector.store_ports import Store

if TYPE_CHECKING:
    from bisector.engine.membership import Membership

_GAP_SECONDS = 5.0
"""How long a bisection still counts as using a testbed after one of its trials was seen to end there: the
next decision takes a second on a large history."""


class UseElsewhere:
    """Which bisection uses which testbed with another executor. Used by one thread, but for `testbeds_of`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[tuple[str, str], float] = {}  # bisection, testbed -> when last

    def poll(self, membership: Membership) -> None:
        """Ask the database what the other executors use."""
        now, trials = time.monotonic(), self._store.trials_of_others(membership.executor)
        seen = self._seen | dict.fromkeys([*trials, *membership.uses_of_others()], now)
        # Never changed in place: the threads of visits may be reading the one before.
        self._seen = {pair: when for pair, when in seen.items() if when > now - _GAP_SECONDS}

    def testbeds_of(self, bisection: str) -> frozenset[str]:
        """Return what a bisection uses elsewhere."""
        return frozenset(testbed for name, testbed in self._seen if name == bisection)
