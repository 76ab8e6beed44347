"""A testbed that shares its host: while a run is timed by the wall clock, nothing else works there."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from bisector.adapters.system.machine_locks import MachineLock
from bisector.model.facts import MonitorResult
from bisector.model.goal import TestbedClock
from bisector.ports import BootFacts, Job, Kernel, Monitor, Progress, RunResult, Session, Testbed


class TestbedOnHost:
    """`ports.Testbed` that takes its turn on its host: runs on the wall clock alone, all else together."""

    __test__ = False

    def __init__(self, testbed: Testbed, host: MachineLock) -> None:
        self.name = testbed.name
        self.clock: TestbedClock = testbed.clock
        self.has_own_kernel = testbed.has_own_kernel
        self._testbed = testbed
        self._host = host

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot when no run on the host is timed. See `ports.Testbed.boot`."""
        started = time.monotonic()
        with self._host.shared(progress):
            waited = time.monotonic() - started
            session = self._testbed.boot(kernel, job, folder, progress)
        facts = replace(session.facts, waited_seconds=waited)
        return _SessionOnHost(facts, session, self._host, alone=self.clock == "wall", progress=progress)

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        """Leave the testbed as it was found, at once, without waiting for a turn."""
        self._testbed.give_back(progress, stop)


@dataclass(slots=True)
class _SessionOnHost:
    facts: BootFacts
    session: Session
    host: MachineLock
    alone: bool
    progress: Progress

    def run(self, index: int) -> RunResult:
        with self._turn():
            return self.session.run(index)

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        with self._turn():
            return self.session.run_monitor(monitor)

    def leave(self) -> None:
        self.session.leave()

    def _turn(self) -> AbstractContextManager[None]:
        return self.host.exclusive(self.progress) if self.alone else self.host.shared(self.progress)
