"""Finds testbeds that fail again and again, also where each trial ends well at last.

A search that is resumed begins anew: who resumes it wants the testbed back.
"""

from __future__ import annotations

from collections import deque

from bisector.errors import FirmwareChanged, InfrastructureError, MachineInUse

_TRIES = 10
"""So many tries of a testbed are looked at: a search takes some dozens, so that one that has become bad is
found in it, and one bad hour long ago is forgotten."""
_FAILURES = 5
"""So many failures among them are too many: each costs a boot and the runs that were not made any more. Where
failures come by chance, a testbed that fails one try in twenty reaches that once in 34,000 tries, one in five
once in 120, every other once in 11 (means of simulated sequences)."""


class RecentTries:
    """The last tries of each testbed in one bisection: a boot and its runs, or further runs in a live one."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lost: dict[str, deque[bool]] = {}

    def went_well(self, testbed: str) -> None:
        """Record a try that the testbed did not break, whatever the kernel did."""
        self._of(testbed).append(False)

    def broke(self, testbed: str, error: InfrastructureError) -> InfrastructureError | None:
        """Record a try that the testbed broke; return an error once it has broken too many, None before.

        A machine that somebody else is using, or has updated, has broken nothing.
        """
        if isinstance(error, (MachineInUse, FirmwareChanged)):
            return None
        lost = self._of(testbed)
        lost.append(True)
        if sum(lost) < _FAILURES:
            return None
        return InfrastructureError(
            f"the testbed '{testbed}' failed in {sum(lost)} of its last {len(lost)} tries; the last time: "
            f"{error.message}",
            details=error.details,
            cure=error.cure,
        )

    def _of(self, testbed: str) -> deque[bool]:
        return self._lost.setdefault(testbed, deque(maxlen=_TRIES))
