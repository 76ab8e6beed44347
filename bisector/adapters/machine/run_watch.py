"""Notices that a machine hangs in a run, long before the run's timeout, and disturbs no usual run.

Nothing is sent to a machine while it measures. A run that takes many times as long as those before is
doubtful by then: the machine is asked whether it still answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import AuthenticationFailed
from bisector.errors import InfrastructureError

_TIMES_LONGER = 10.0
"""How many times as long as usual a run may take before the machine is asked: regressions are smaller."""

_LEAST_SECONDS = 60.0
"""No machine is asked earlier in a run: a disk that wakes up, or a cold cache, may take so long."""

_FIRST_RUN_SECONDS = 600.0
"""The same for a first run, of which nothing is known. Most benchmarks have ended by then."""

_NEXT = 2.0
"""After an answer, the machine is asked again once the run has taken this many times as long, so only
rarely."""

_SILENCES, _PAUSE_SECONDS = 3, 20.0
"""Questions without an answer, and the seconds between them, after which the machine counts as hung: logins
are slow under load."""


@dataclass(slots=True)
class RunWatch:
    """Watches the runs of one workload on a machine, one at a time."""

    reach: MachineReach
    _longest: float = 0.0
    _began: float = inf
    _ask_at: float = inf
    _silences: int = field(default=0)

    def run_begins(self, settling: float = 0.0) -> None:
        """Begin to watch. settling: seconds of pause that the run begins with."""
        self._began = awake_seconds() + settling
        patience = max(_LEAST_SECONDS, _TIMES_LONGER * self._longest) if self._longest else _FIRST_RUN_SECONDS
        self._ask_at, self._silences = self._began + patience, 0

    def run_ended(self, *, usual: bool) -> None:
        """Stop watching. usual: it was a run that went well, so it says how long runs take."""
        if usual:
            self._longest = max(self._longest, awake_seconds() - self._began)
        self._began = self._ask_at = inf

    def death(self) -> str | None:
        """Return that the machine answers nobody, or None while it does, or need not be asked yet."""
        now = awake_seconds()
        if now < self._ask_at:
            return None
        try:
            self.reach.ask()
        except AuthenticationFailed:
            pass  # somebody answers, though not to us: it may be another machine, and is not to be switched
        except InfrastructureError as error:
            self._silences += 1
            self._ask_at = awake_seconds() + _PAUSE_SECONDS
            if self._silences < _SILENCES:
                return None
            took = now - self._began
            return f"{took:.0f} s after the run began nobody answers: {error.message}"
        self._silences = 0
        self._ask_at = self._began + _NEXT * (now - self._began)
        return None
