"""A worker on fakes that writes down what its machines see; a program of its own.

Its arguments are those of `tests/support/servers/fake_worker.py`. Environment: WATCHED_FOLDER gets the logs.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

from bisector.adapters.store import sql_coordinator
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app.wiring import SystemClock
from bisector.errors import Fenced
from bisector.interfaces.cli import leave
from bisector.model.leases import Lease
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from tests.campaign.workers.machine_log import CLOCK, FOLDER, REFUSED, Seen
from tests.support.servers import fake_worker

_folder = Path(os.environ.get(FOLDER, "."))
_epochs: dict[str, int] = {}
"""Testbed -> epoch of the lease under which this process works on it."""


def _see(testbed: str, what: str, folder: Path, run: int = -1) -> None:
    """Write down what a machine sees; a line is written whole, whatever happens to this process."""
    seen = Seen(
        time.monotonic(), os.getpid(), _epochs.get(testbed, 0), what, folder.parents[1].name, folder.name, run
    )
    with (_folder / f"machine-{testbed}").open("ab", buffering=0) as log:
        log.write(seen.line())


def _watch_leases() -> None:
    acquire = SqlCoordinator.acquire

    def watched(coordinator: SqlCoordinator, resource: str, executor: str) -> Lease | None:
        lease = acquire(coordinator, resource, executor)
        if lease is not None and resource.startswith("testbed "):
            _epochs[resource.removeprefix("testbed ")] = lease.epoch
        return lease

    setattr(SqlCoordinator, "acquire", watched)  # noqa: B010 - the types differ
    for name in ("lease_lost", "executor_fenced"):
        _count_refusals(name)


def _count_refusals(name: str) -> None:
    make = getattr(sql_coordinator, name)

    def watched(what: Any) -> Fenced:
        error: Fenced = make(what)
        with (_folder / REFUSED).open("ab", buffering=0) as log:
            log.write(f"{name} {error.message}\n".encode())
        return error

    setattr(sql_coordinator, name, watched)


def _tell_name(name: str) -> None:
    """Let the database know which worker writes."""
    connect = psycopg.connect
    psycopg.connect = lambda *words, **more: connect(*words, **{**more, "application_name": name})


def _watch_machines() -> None:
    boot, run, left = FakeTestbed.boot, FakeSession.run, FakeSession.leave

    def watched_boot(testbed: FakeTestbed, kernel: Any, job: Any, folder: Path, progress: Any) -> FakeSession:
        _see(testbed.name, "boot", folder)
        return boot(testbed, kernel, job, folder, progress)

    def watched_run(session: FakeSession, index: int) -> Any:
        _see(session._testbed.name, "run", session._folder, index)
        result = run(session, index)
        _see(session._testbed.name, "ran", session._folder, index)
        return result

    def watched_leave(session: FakeSession) -> None:
        _see(session._testbed.name, "leave", session._folder)
        left(session)

    setattr(FakeTestbed, "boot", watched_boot)  # noqa: B010 - the types differ
    setattr(FakeSession, "run", watched_run)  # noqa: B010 - the types differ
    setattr(FakeSession, "leave", watched_leave)  # noqa: B010 - the types differ


def _step_clock() -> None:
    """Let this host's clock go as wrong as a file says."""

    def now(clock: SystemClock) -> float:
        steps = _folder / f"{CLOCK}-{os.getpid()}"
        return time.time() + (float(steps.read_text()) if steps.exists() else 0.0)

    setattr(SystemClock, "now", now)  # noqa: B010 - the types differ


if __name__ == "__main__":
    _tell_name(sys.argv[3])
    _watch_leases()
    _watch_machines()
    _step_clock()
    leave(fake_worker.main())
