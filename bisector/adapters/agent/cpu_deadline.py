"""Deadlines for guests on a busy host.

An emulated guest on the instruction clock keeps one CPU of the host busy whatever it does. If it got little
of one, its silence says that the host is busy, and nothing about the kernel: it is waited for, within reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

CpuTime = Callable[[], float | None]
"""Seconds of this host's CPUs that a guest has had so far; None where that is no measure or not known."""

_SHARE = 1 / 3
"""Of the time that is allowed, which a guest must have had as CPU time before it is judged. A boot takes 3 to
13 CPU seconds, a run 2 to 5; 180 s and 120 s were not enough for that on two CPUs with loads of 12 and 30."""

_MORE = 3
"""So many times the allowed time is added at most."""


@dataclass(slots=True)
class CpuDeadline:
    """A deadline `timeout` seconds from `started` (monotonic; default: now), longer for a starved guest."""

    timeout: float
    cpu_time: CpuTime
    started: float = field(default_factory=time.monotonic)
    _before: float = 0.0

    def __post_init__(self) -> None:
        self._before = self.cpu_time() or 0.0

    def expired(self) -> bool:
        """Say whether the time is up."""
        gone = time.monotonic() - self.started
        if gone < self.timeout or gone > (1 + _MORE) * self.timeout:
            return gone >= self.timeout
        worked = self.cpu_time()
        return worked is None or worked - self._before >= _SHARE * self.timeout
