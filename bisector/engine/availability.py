"""Testbeds that must not be used now: in maintenance, suspect, retired, reserved, or failing a check."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Protocol

from bisector.ports import Progress
from bisector.store_ports import Coordinator
from bisector.utc_time import minute


class UseChecks(Protocol):
    """Checks of testbeds between visits. `passes` and `used` are called while we have the testbed."""

    def is_due(self, testbed: str) -> bool:
        """Return whether a testbed that is used should be left for a check between two boots."""
        ...

    def is_recheck_due(self, testbed: str) -> bool:
        """Return whether a suspect testbed is due for a check that lets it return without a person's word."""
        ...

    def passes(self, testbed: str, bisection: str, note: Progress, stop: Callable[[], bool]) -> bool:
        """Check a testbed if that is due; return whether a bisection may use it. Raises nothing."""
        ...

    def used(self, testbed: str) -> None:
        """Take note that a visit has ended. Raises nothing."""
        ...


class NoChecks:
    """UseChecks that let every testbed pass."""

    def is_due(self, testbed: str) -> bool:
        """Return False."""
        return False

    is_recheck_due = is_due

    def passes(self, testbed: str, bisection: str, note: Progress, stop: Callable[[], bool]) -> bool:
        """Return True."""
        return True

    def used(self, testbed: str) -> None:
        """Do nothing."""


_ASK_SECONDS = 1.0
"""How often the database is asked at most: testbeds are looked at five times a second."""


class Availability:
    """Says why a testbed must not be used. Safe to use from several threads."""

    def __init__(self, coordinator: Coordinator, who: str = "") -> None:
        """coordinator: of the database that the bisections are in; who: whose own reservations allow it."""
        self._coordinator, self._who = coordinator, who
        self._lock = threading.Lock()
        self._asked = float("-inf")
        self._reasons: dict[str, str] = {}

    def why_not(self, testbed: str) -> str | None:
        """Return why a testbed must not be used, None where it may."""
        with self._lock:
            if time.monotonic() > self._asked + _ASK_SECONDS:
                self._reasons = why_not(self._coordinator, self._who)
                self._asked = time.monotonic()
            return self._reasons.get(testbed)


def why_not(coordinator: Coordinator, who: str = "", besides: Collection[str] = ()) -> dict[str, str]:
    """Return the testbeds that must not be used now, with the reason in words.

    who: may use what they have reserved themselves; besides: states that also allow use.
    """
    now = coordinator.now()
    reserved = {
        r.testbed: f"reserved by {r.who} until {minute(r.end)}"
        for r in coordinator.reservations()
        if r.start <= now and r.who != who
    }
    bad = {
        status.name: f"{status.state}: {status.reason or 'no reason given'} ({status.by})"
        for status in coordinator.testbeds()
        if status.state != "good" and status.state not in besides
    }
    return reserved | bad
