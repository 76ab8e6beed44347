"""A clock for deadlines that stands still while this process does.

A process that is stopped (SIGSTOP, a frozen container, a suspended virtual machine) does not see what happens
meanwhile. When it goes on, every deadline by `time.monotonic` has passed, and a kernel would be blamed for
what its watcher slept through. So a thread looks at the clock all the time; what it misses does not count.
"""

from __future__ import annotations

import threading
import time

_TICK_SECONDS = 0.5
"""How often the thread looks: an idle process wakes twice a second, which costs 50 microseconds."""

_GAP_SECONDS = 2.0
"""How long it may be kept from looking before that counts as a stop: on two CPUs under a load of 30, threads
came up to a second late. A stop costs a deadline this much and no more."""


class _AwakeClock:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._seen = self._missed = 0.0

    def seconds(self) -> float:
        with self._lock:
            now = time.monotonic()
            if self._thread is None or not self._thread.is_alive():  # nor is it in a forked child
                self._seen = now
                self._thread = threading.Thread(target=self._watch, name="awake clock", daemon=True)
                self._thread.start()
            return now - self._missed - self._gap(now)

    def _watch(self) -> None:
        while True:
            time.sleep(_TICK_SECONDS)
            with self._lock:
                now = time.monotonic()
                self._missed += self._gap(now)
                self._seen = now

    def _gap(self, now: float) -> float:
        return max(0.0, now - self._seen - _GAP_SECONDS)


_clock = _AwakeClock()


def awake_seconds() -> float:
    """Return seconds since some moment, as `time.monotonic` does, less those in which we were stopped."""
    return _clock.seconds()
