"""The leases of the testbeds that a process uses: with a database server, no two hosts use one at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from bisector.engine.membership import Membership
from bisector.model.leases import Lease

_ASK_SECONDS = 1.0
"""How often the database is asked for a testbed that another executor has, and who waits for ours."""
_SILENT_SECONDS = 5.0
"""How long to wait for another executor's testbed before saying so: a hand-over takes a second or two."""


class TestbedLeases:
    """What this process has leased of the testbeds. Used by one thread, but for `is_wanted`.

    Without a membership, with a state file, every testbed is ours and nobody else wants it.
    """

    __test__ = False  # not a pytest class

    def __init__(self, membership: Membership | None, tell: Callable[[str, str], object]) -> None:
        """tell: takes a testbed, and a text for the bisections that wait for it."""
        self._membership = membership
        self._tell = tell
        self._held: dict[str, Lease] = {}
        # Testbed that another executor has -> since when, when last asked for, whether that was reported.
        self._refused: dict[str, tuple[float, float, bool]] = {}
        self._wanted: Collection[str] = ()
        self._asked = float("-inf")

    def poll(self) -> bool:
        """Ask what others want of ours, if it is time for that; return whether it was."""
        if self._membership is None or time.monotonic() <= self._asked + _ASK_SECONDS:
            return False
        self._asked = time.monotonic()
        self._wanted = self._membership.wanted_testbeds() if self._held else ()
        return True

    def is_wanted(self, testbed: str) -> bool:
        """Return whether another executor waited for a testbed of ours when last asked."""
        return testbed in self._wanted

    def get(self, testbed: str) -> Lease | None:
        """Return the lease of a testbed that we have; None without a database server."""
        return self._held.get(testbed)

    def acquire(self, testbed: str) -> bool:
        """Return whether no other host has a testbed; it is ours until `release` then."""
        if self._membership is None:
            return True
        now = time.monotonic()
        since, asked, told = self._refused.get(testbed, (now, float("-inf"), False))
        if now < asked + _ASK_SECONDS:
            return False
        lease = self._membership.acquire_testbed(testbed)
        if lease is None:
            tell = not told and now > since + _SILENT_SECONDS
            if tell:
                user = self._membership.user_of(testbed)
                self._tell(testbed, f"waiting for the testbed '{testbed}', which {user} uses")
            self._refused[testbed] = since, now, told or tell
            return False
        self._refused.pop(testbed, None)
        self._held[testbed] = lease
        return True

    def release(self, testbed: str) -> None:
        """Let other hosts have a testbed whose visit has ended."""
        lease = self._held.pop(testbed, None)
        if self._membership is not None and lease is not None:
            self._membership.release(lease)
