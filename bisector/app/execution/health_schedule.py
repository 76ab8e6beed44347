"""When a testbed's health is checked: before work after a pause, once a day, and again where it did not boot.

A check is made when work waits for the testbed, so an idle machine costs nothing. Where the level has moved a
person decides: even if it moves back by itself, whatever was measured in between is in doubt. A testbed that
did not boot may have had a passing fault, and measures as before once it boots again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bisector.app.execution.health_check import check_health, health_store, testbed_status
from bisector.engine.availability import NoChecks, UseChecks, why_not
from bisector.errors import Interrupted, PerfbisectError
from bisector.model.machines.health import only_failed_to_boot
from bisector.schemas.request import read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.ports import Progress

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS
RECHECK_SECONDS = HOUR_SECONDS / 2
"""Pause between two tries of a testbed that did not boot: time for somebody to repair it."""
_ASK_SECONDS = 10.0
"""Least time between two queries of the database, although testbeds are looked at five times a second."""


def checks_for(wiring: Wiring, worker: str) -> UseChecks:
    """Return the checks that settings want. worker: the name of ours, '' for a process that is none."""
    wanted = wiring.settings.health_checks
    if wanted == "never" or (wanted == "workers" and not worker):
        return NoChecks()
    return HealthChecks(wiring, "" if worker else wiring.settings.owner)


class HealthChecks:
    """engine.availability.UseChecks of a worker. Safe to use from several threads."""

    def __init__(self, wiring: Wiring, who: str = "") -> None:
        """wiring: of the process that executes; who: whose own reservations allow it to use a testbed."""
        self._wiring, self._who = wiring, who
        self._lock = threading.Lock()
        self._tried: dict[str, float] = {}  # testbed -> when we looked last whether a check could be made
        self._answers: dict[tuple[str, str], tuple[float, bool]] = {}

    def is_due(self, testbed: str) -> bool:
        """Return whether the last check was a day ago, or more."""
        return self._ask("day", testbed, lambda: self._last_check(testbed) + DAY_SECONDS <= self._now())

    def is_recheck_due(self, testbed: str) -> bool:
        """Return whether a testbed is suspect because it did not boot, half an hour ago or more."""
        return self._ask("recheck", testbed, lambda: self._is_recheck_due(testbed))

    def passes(self, testbed: str, bisection: str, note: Progress, stop: Callable[[], bool]) -> bool:
        """Check a testbed if that is due; return whether a bisection may use it. Raises nothing."""
        try:
            suspect = self._is_recheck_due(testbed)
            if not (suspect or self._is_due_before_use(testbed)):
                return not self._is_out_of_use(testbed)
            self._tried[testbed] = self._now()
            note(f"a health check of the testbed '{testbed}' comes first; no cap or budget counts it")
            accepted = read_accepted(self._wiring.store.load(bisection).request)
            with self._wiring.claim_testbed(testbed, note, stop):
                found = check_health(self._wiring, testbed, note, stop, accepted)
            note(f"health of the testbed '{testbed}': {found.outcome}; {found.words}")
            return found.state == "good"
        except Interrupted:
            return False
        except PerfbisectError as error:  # the request's, the builder's, the database's: not the testbed's
            note(f"the testbed '{testbed}' could not be checked: {error.message}")
        except Exception as error:
            note(f"the testbed '{testbed}' could not be checked: {type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._answers.clear()
        return not self._is_out_of_use(testbed)

    def used(self, testbed: str) -> None:
        """Take note that a visit has ended. Raises nothing."""
        try:
            health_store(self._wiring).note_use(testbed)
        except PerfbisectError:  # no harm: a check comes too often, or too late
            return

    def _is_due_before_use(self, testbed: str) -> bool:
        now, last = self._now(), self._last_check(testbed)
        pause = self._wiring.settings.health_pause_hours * HOUR_SECONDS
        idle_since = max(last, health_store(self._wiring).last_use(testbed) or 0.0)
        return last + DAY_SECONDS <= now or idle_since + pause <= now

    def _last_check(self, testbed: str) -> float:
        points = health_store(self._wiring).points(testbed)
        return max(self._tried.get(testbed, 0.0), points[-1].at if points else 0.0)

    def _is_recheck_due(self, testbed: str) -> bool:
        coordinator = self._wiring.coordinator
        status = testbed_status(self._wiring, testbed)
        return (
            only_failed_to_boot(status, health_store(self._wiring).points(testbed))
            and why_not(coordinator, self._who, ("suspect",)).get(testbed) is None
            and self._last_check(testbed) + RECHECK_SECONDS <= self._now()
        )

    def _is_out_of_use(self, testbed: str) -> bool:
        try:
            return why_not(self._wiring.coordinator, self._who).get(testbed) is not None
        except PerfbisectError:
            return True

    def _now(self) -> float:
        return self._wiring.coordinator.now()

    def _ask(self, what: str, testbed: str, find: Callable[[], bool]) -> bool:
        """Return the answer, at most `_ASK_SECONDS` old. Where it cannot be found out, nothing is due."""
        with self._lock:
            asked, answer = self._answers.get((what, testbed), (float("-inf"), False))
        if time.monotonic() <= asked + _ASK_SECONDS:
            return answer
        try:
            answer = find()
        except PerfbisectError:
            answer = False
        with self._lock:
            self._answers[what, testbed] = time.monotonic(), answer
        return answer
