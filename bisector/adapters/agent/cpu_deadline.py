"""Deadlines for guests on an overloaded host.

An emulated guest on the instruction clock uses one CPU of the host whatever it does. Little CPU time means
that the host is overloaded, and nothing about the kernel: the deadline is extended, up to a limit. Time in
which this process was stopped does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bisector.adapters.system.awake_clock import awake_seconds

CpuTime = Callable[[], float | None]
"""Returns the CPU seconds of this host that a guest has used; None where that is no measure, or unknown."""

_REQUIRED_CPU_SHARE = 1 / 3
"""Part of the timeout that a guest must have had as CPU time before the deadline expires.

A boot takes 3 to 13 CPU seconds, a run 2 to 5. Timeouts of 180 s and 120 s were not
enough for that on two CPUs with loads of 12 and 30.
"""

_MAX_EXTENSION = 3
"""Longest extension, in timeouts: a guest that gets no CPU time is given up after four times the timeout."""


@dataclass(slots=True)
class CpuDeadline:
    """A deadline `timeout` seconds after `started` (`awake_seconds`; default: now), or later.

    cpu_time: of the guest; see `CpuTime`.
    """

    timeout: float
    cpu_time: CpuTime
    started: float = field(default_factory=awake_seconds)
    _used_before: float = field(init=False)

    def __post_init__(self) -> None:
        self._used_before = self.cpu_time() or 0.0

    def expired(self) -> bool:
        """Return whether the time is up."""
        elapsed = awake_seconds() - self.started
        if elapsed < self.timeout or elapsed > (1 + _MAX_EXTENSION) * self.timeout:
            return elapsed >= self.timeout
        used = self.cpu_time()
        return used is None or used - self._used_before >= _REQUIRED_CPU_SHARE * self.timeout
