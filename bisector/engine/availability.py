"""Testbeds that must not be used now: in maintenance, suspect, retired, or reserved by a person."""

from __future__ import annotations

import threading
import time

from bisector.store_ports import Coordinator

_ASK_SECONDS = 1.0
"""How often the database is asked at most: testbeds are looked at five times a second."""


class Availability:
    """Says why a testbed must not be used. Safe to use from several threads."""

    def __init__(self, coordinator: Coordinator) -> None:
        """coordinator: of the database that the bisections are in."""
        self._coordinator = coordinator
        self._lock = threading.Lock()
        self._asked = float("-inf")
        self._reasons: dict[str, str] = {}

    def why_not(self, testbed: str) -> str | None:
        """Return why a testbed must not be used, None where it may."""
        with self._lock:
            if time.monotonic() > self._asked + _ASK_SECONDS:
                self._reasons = why_not(self._coordinator)
                self._asked = time.monotonic()
            return self._reasons.get(testbed)


def why_not(coordinator: Coordinator) -> dict[str, str]:
    """Return the testbeds that must not be used now, with the reason in words."""
    now = coordinator.now()
    reserved = {
        r.testbed: f"reserved by {r.who}" for r in coordinator.reservations() if r.start <= now < r.end
    }
    bad = {
        status.name: f"{status.state}: {status.reason or 'no reason given'} ({status.by})"
        for status in coordinator.testbeds()
        if status.state != "good"
    }
    return reserved | bad
