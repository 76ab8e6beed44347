"""Keeps the mark on a machine while we use it: between boots in a thread, within a boot before each run.

A kernel may be built for longer than a mark holds. While a boot is under way no thread connects: that would
disturb what is measured; the mark holds for a whole boot and a run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from bisector.adapters.machine.machine_mark import MOST_SECONDS, MachineMark
from bisector.errors import InfrastructureError, MachineInUse

log = logging.getLogger(__name__)

_BOOTS = 3
_SECONDS = 600.0
"""A mark holds for this many boot timeouts (of the machine's own boot, of the kernel under test, and of the
way back), plus these seconds (for two copies of a kernel over a slow line), plus a run."""

_RENEWALS = 3
"""How often a mark is renewed in the time that it holds, so that a machine out of reach for a while keeps
it."""

_LOOK_SECONDS = 5.0
"""How often the thread looks whether the mark is due."""


class MarkKeeper:
    """Our mark on one machine, renewed. Safe to use from several threads."""

    def __init__(
        self,
        mark: MachineMark,
        boot_timeout: float,
        stop: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """boot_timeout: of the machine; stop: the thread ends; now: a clock that goes on while we sleep."""
        self._mark, self._stop, self._now, self._look = mark, stop, now, look_seconds
        self._least = boot_timeout * _BOOTS + _SECONDS
        self._seconds = self._least
        self._lock = threading.Lock()
        self._renewed: float | None = None
        self._paused = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, run_seconds: float) -> bool:
        """Mark the machine, and keep the mark until `end`; return whether a stale one was there.

        A boot is under way then, until `boot_ended`. run_seconds: the longest that a run of it may take.
        Raises as `MachineMark.set`.
        """
        with self._lock:
            self._seconds = min(self._least + run_seconds, MOST_SECONDS)
            self._paused = True
            asked = self._now()
            stale = self._mark.set(self._seconds)
            self._renewed = asked
            if self._thread is None or not self._thread.is_alive():
                self._ended = threading.Event()
                self._thread = threading.Thread(
                    target=self._keep, args=(self._ended,), name=f"mark {self._mark.name}", daemon=True
                )
                self._thread.start()
        return stale

    def boot_ended(self) -> None:
        """Nothing is measured any more: the thread may connect."""
        self._paused = False

    def before_run(self) -> None:
        """Renew the mark if it is due. Raises MachineInUse where another has taken the machine over."""
        with self._lock:
            if not self._renew_if_due():
                raise MachineInUse(
                    f"the machine of the testbed '{self._mark.name}' was taken over by another perfbisect",
                    cure="'perfbisect lab check' says who uses it; its mark had ended, or was removed",
                )

    def holds(self) -> bool:
        """Return whether the mark cannot have expired yet, so that nobody else has taken the machine."""
        with self._lock:
            return self._renewed is not None and self._now() < self._renewed + self._seconds

    def renew(self) -> bool:
        """Renew the mark; return False where another has taken the machine over. Raises as the mark's."""
        with self._lock:
            asked = self._now()
            ours = self._mark.renew(self._seconds)
            if ours:
                self._renewed = asked
            return ours

    def end(self) -> None:
        """Renew it no more."""
        self._ended.set()
        with self._lock:
            self._thread = None

    def _renew_if_due(self) -> bool:
        """Return False where another has taken the machine over; one that does not answer is asked later."""
        if self._renewed is None or self._now() < self._renewed + self._seconds / _RENEWALS:
            return True
        asked = self._now()
        try:
            if not self._mark.renew(self._seconds):
                return False
        except InfrastructureError as error:
            log.info("the mark on '%s' is not renewed: %s", self._mark.name, error)
        else:
            self._renewed = asked
        return True

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(self._look):
            if self._stop():  # told to stop: giving back renews it by itself
                return
            with self._lock:
                if not (self._paused or ended.is_set()) and not self._renew_if_due():
                    log.warning("'%s' was taken over by another perfbisect", self._mark.name)
                    return
