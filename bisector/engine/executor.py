"""The one executor of a state folder: holds its lock, launches DBOS, runs a bisection to its end.

Two processes that launch DBOS on one SQLite file take over each other's work, hence the lock.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bisector.engine.driver import Driver
from bisector.engine.events import OnEvent
from bisector.engine.services import Services
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError
from bisector.ports import Stored

_POLL_SECONDS = 0.2
"""How soon Ctrl-C and the end of a bisection are noticed."""
_FAREWELL_SECONDS = 30.0
"""For a build or a boot to end after its guest and children were ended, before the process goes anyway."""


class Busy(PerfbisectError):
    """Another process runs bisections in this state folder. `bisection` is the one it runs."""

    exit_code = 1

    def __init__(self, pid: str, bisection: str) -> None:
        """pid and bisection as the other process wrote them into the lock file."""
        self.bisection = bisection
        super().__init__(
            f"another perfbisect (process {pid}) is running the bisection '{bisection}' in this state folder",
            cure="wait, follow it with 'perfbisect status', or use another folder: PERFBISECT_STATE_DIR",
        )


@contextmanager
def lock(state_dir: Path, bisection: str) -> Iterator[None]:
    """Hold the state folder's lock. Raises Busy."""
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "executor.lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(file) from None
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()} {bisection}\n")
        file.flush()
        try:
            yield
        finally:
            file.seek(0)
            file.truncate()


def runner(state_dir: Path) -> str | None:
    """Return the bisection that some process is running in this state folder, if any."""
    try:
        with lock(state_dir, ""):
            return None
    except Busy as busy:
        return busy.bisection


def execute(stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> None:
    """Run a bisection to its end; the conclusion is then in the store.

    Raises Busy, Interrupted (stop was set, or Ctrl-C; resumable) or InfrastructureError (resumable).
    """
    with lock(services.state_dir, stored.id):
        driver = Driver(stored, services, on_event, stop)
        services.store.set_status(stored.id, "running")
        try:
            result = _run(driver, services, stop)
        except KeyboardInterrupt:
            result = {"interrupted": True, "error": "interrupted"}
        except BaseException:
            services.store.set_status(stored.id, "failed")
            raise
        finally:
            driver.close()
        if result.get("interrupted"):
            if services.store.status(stored.id) == "cancelled":
                raise Interrupted(f"the bisection '{stored.id}' was cancelled")
            services.store.set_status(stored.id, "interrupted")
            raise Interrupted(
                f"the bisection '{stored.id}' is interrupted; nothing is lost",
                cure=f"perfbisect resume {stored.id}",
            )
        if "error" in result:
            services.store.set_status(stored.id, "failed")
            raise InfrastructureError(
                result["error"],
                details=result.get("details", ""),
                cure=result.get("cure") or f"mend the cause, then: perfbisect resume {stored.id}",
            )


def _run(driver: Driver, services: Services, stop: threading.Event) -> dict[str, Any]:
    from dbos import DBOS, SetWorkflowID

    from bisector.engine import workflow

    url = f"sqlite:///{services.state_dir / 'dbos.sqlite'}"
    testbeds = list(services.testbeds)
    workflow.attach(driver)
    DBOS(
        config={
            "name": "perfbisect",
            "system_database_url": url,
            "application_version": workflow.APPLICATION_VERSION,
            "serializer": workflow.JsonSerializer(),
            "log_level": "CRITICAL",
            "console_log_level": "CRITICAL",
        }
    )
    try:
        left_over = _retire_others(url, driver.id, workflow.APPLICATION_VERSION, workflow.JsonSerializer())
        DBOS.launch()
        for testbed in testbeds:
            DBOS.register_queue(
                workflow.queue_of(testbed),
                worker_concurrency=1,
                polling_interval_sec=workflow.QUEUE_POLL_SECONDS,
                on_conflict="always_update",
            )
        handle: Any
        if left_over is not None:
            handle = DBOS.retrieve_workflow(left_over)
        else:
            attempts = len(DBOS.list_workflows(workflow_id_prefix=f"{driver.id}.", name="bisection"))
            with SetWorkflowID(f"{driver.id}.{attempts + 1}"):
                handle = DBOS.start_workflow(workflow.bisection, driver.id, testbeds)
        return _wait(handle, driver, services, stop)
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=0)
        workflow.detach(driver.id)


def _wait(
    handle: Any,  # noqa: ANN401 - DBOS's
    driver: Driver,
    services: Services,
    stop: threading.Event,
) -> dict[str, Any]:
    """Return the workflow's result.

    Ctrl-C, `stop` and a `perfbisect cancel` elsewhere end the live boots, which ends the running step.
    """
    done = threading.Event()
    result: dict[str, Any] = {}

    def collect() -> None:
        try:
            result.update(handle.get_result(polling_interval_sec=_POLL_SECONDS))
        except Exception as error:  # whatever DBOS raises ends the bisection, resumable
            result.setdefault("error", f"the workflow engine failed: {error}")
        done.set()

    threading.Thread(target=collect, daemon=True, name="result").start()
    try:
        while not stop.is_set() and not done.wait(_POLL_SECONDS):
            if stop.is_set() or services.store.status(driver.id) == "cancelled":
                stop.set()
    except KeyboardInterrupt:
        stop.set()
    if stop.is_set() and not done.is_set():
        driver.close()
        done.wait(_FAREWELL_SECONDS)
        result.setdefault("interrupted", True)
    return result


def _retire_others(url: str, bisection: str, version: str, serializer: Any) -> str | None:  # noqa: ANN401
    """Cancel what other bisections left pending; return this one's pending workflow, to be recovered.

    Launching DBOS takes up everything that is pending; a bisection that the user did not name must not
    start by itself. It loses nothing: its records are in the store, and resuming it starts a new workflow.
    """
    from dbos import DBOS, DBOSClient

    DBOS.migrate(url)
    client = DBOSClient(system_database_url=url, serializer=serializer)
    try:
        found = None
        for status in client.list_workflows(status=["PENDING", "ENQUEUED"]):
            name = status.workflow_id
            if name.startswith(f"{bisection}.") and status.app_version == version:
                if status.name == "bisection":
                    found = name
            else:
                client.cancel_workflow(name)
        return found
    finally:
        client.destroy()


def _busy(file: IO[str]) -> Busy:
    file.seek(0)
    pid, _, bisection = file.read().strip().partition(" ")
    return Busy(pid or "unknown", bisection or "unknown")
