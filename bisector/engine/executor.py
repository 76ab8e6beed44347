"""The one executor of a state folder: holds its lock, launches DBOS, runs a bisection to its end.

Two processes that launch DBOS on one SQLite file take over each other's work, hence the lock.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bisector.engine.disk_reserve import DiskReserve, remove_reserve
from bisector.engine.events import Event, OnEvent
from bisector.engine.services import Services
from bisector.engine.state_lock import Busy, lock
from bisector.engine.trial_runner import TrialRunner
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.model.stored_bisection import Stored

_POLL_SECONDS = 0.2
"""How soon Ctrl-C and the end of a bisection are noticed."""
_SHUTDOWN_SECONDS = 30.0
"""Timeout of a build or boot to end after its guest and children ended; then the process ends anyway."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C, SIGTERM or closed terminal set `stop`; a second Ctrl-C ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: object) -> None:
        if number == signal.SIGINT and stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def tidy(stored: Stored, services: Services) -> None:
    """End and remove what a process left that was killed when the conclusion was written already.

    Nothing is touched while another process works in this state folder.
    """
    with contextlib.suppress(Busy), lock(services.state_dir, stored.id):
        services.tidy(services.folder(stored.id))
        remove_reserve(services.state_dir)


def execute(stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> None:
    """Run a bisection to its end; the conclusion is then in the store.

    Raises Busy, Interrupted (stop was set, Ctrl-C or SIGTERM), RequestError (something it was begun with has
    changed) or InfrastructureError; it can be resumed after each.
    """
    with lock(services.state_dir, stored.id), _signals(stop), _resumable(stored.id):
        services.tidy(services.folder(stored.id))
        reserve = DiskReserve(services.state_dir)
        trials = TrialRunner(stored, services, on_event, stop)
        services.store.set_status(stored.id, "running")

        def told_to_stop() -> bool:
            if services.store.status(stored.id) == "cancelled":
                stop.set()
            return stop.is_set()

        try:
            with services.claim(lambda text: on_event(Event("note", text)), told_to_stop):
                result = _run(trials, services, stop, reserve)
        except (KeyboardInterrupt, Interrupted):
            result = {"error": "interrupted"}
            stop.set()
        except BaseException:
            _record_failure(services, stored.id)
            raise
        finally:
            reserve.release()
            trials.close()
        if "ended" in result:
            return
        if stop.is_set():
            if services.store.status(stored.id) == "cancelled":
                raise Interrupted(f"the bisection '{stored.id}' was cancelled")
            services.store.set_status(stored.id, "interrupted")
            raise Interrupted(
                f"the bisection '{stored.id}' is interrupted; nothing is lost",
                cure=f"perfbisect resume {stored.id}",
            )
        _record_failure(services, stored.id)
        message, details = result.get("error", "the workflow engine stopped"), result.get("details", "")
        kind = RequestError if result.get("exit_code") == RequestError.exit_code else InfrastructureError
        raise kind(message, details=details, cure=result.get("cure") or "mend the cause")


@contextmanager
def _resumable(bisection: str) -> Iterator[None]:
    """Let the cure of whatever breaks end with the command that goes on."""
    try:
        yield
    except InfrastructureError as error:
        if "perfbisect resume" not in error.cure:
            error.cure = "; then: ".join(filter(None, (error.cure, f"perfbisect resume {bisection}")))
        raise


def _record_failure(services: Services, bisection: str) -> None:
    """Write down that a bisection failed. Where the store has failed itself, it must not hide the reason."""
    with contextlib.suppress(InfrastructureError):
        services.store.set_status(bisection, "failed")


def _run(
    trials: TrialRunner, services: Services, stop: threading.Event, reserve: DiskReserve
) -> dict[str, Any]:
    from dbos import DBOS, SetWorkflowID

    from bisector.engine import workflows

    url = f"sqlite:///{services.state_dir / 'dbos.sqlite'}"
    testbeds = list(services.testbeds)
    workflows.attach(trials)
    DBOS(
        config={
            "name": "perfbisect",
            "system_database_url": url,
            "application_version": workflows.APPLICATION_VERSION,
            "serializer": workflows.JsonSerializer(),
            "log_level": "CRITICAL",
            "console_log_level": "CRITICAL",
        }
    )
    try:
        left_over = _retire_others(url, trials.id)
        DBOS.launch()
        for testbed in testbeds:
            DBOS.register_queue(
                workflows.queue_of(testbed),
                worker_concurrency=1,
                polling_interval_sec=workflows.QUEUE_POLL_SECONDS,
                on_conflict="always_update",
            )
        handle: Any
        if left_over is not None:
            handle = DBOS.retrieve_workflow(left_over)
        else:
            attempts = len(DBOS.list_workflows(workflow_id_prefix=f"{trials.id}.", name="bisection"))
            with SetWorkflowID(f"{trials.id}.{attempts + 1}"):
                handle = DBOS.start_workflow(workflows.bisection, trials.id, testbeds)
        result = _wait(handle, trials, services, stop, reserve)
        _prune(trials.id)
        return result
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=0)
        workflows.detach(trials.id)


def _wait(
    handle: Any,  # noqa: ANN401 - DBOS's
    trials: TrialRunner,
    services: Services,
    stop: threading.Event,
    reserve: DiskReserve,
) -> dict[str, Any]:
    """Return the workflow's result; raises InfrastructureError when the disk is full.

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
    full = False
    while not stop.is_set() and not done.wait(_POLL_SECONDS):
        full = reserve.is_full()
        if full or services.store.status(trials.id) == "cancelled":
            stop.set()
    # What the engine could not write for want of space it never writes: no use in waiting long for that.
    deadline = time.monotonic() + (_SHUTDOWN_SECONDS / 6 if full else _SHUTDOWN_SECONDS)
    while not done.is_set() and time.monotonic() < deadline:
        trials.close()  # repeatedly: a guest may still start during shutdown
        done.wait(_POLL_SECONDS)
    if full:
        raise reserve.error()
    return dict(result)


def _prune(bisection: str) -> None:
    """Forget the workflows of a bisection that have ended: all that matters is in the store."""
    from dbos import DBOS

    with contextlib.suppress(Exception):  # tidying must not turn a good end into a bad one
        known = DBOS.list_workflows(workflow_id_prefix=f"{bisection}.")
        if all(w.status not in ("PENDING", "ENQUEUED") for w in known):
            DBOS.delete_workflows([w.workflow_id for w in known])


def _retire_others(url: str, bisection: str) -> str | None:
    """Cancel what other bisections left pending; return this one's pending workflow, to be recovered.

    Launching DBOS takes up everything that is pending; a bisection that the user did not name must not
    start by itself. It loses nothing: its records are in the store, and resuming it starts a new workflow.
    So does a workflow that set a testbed aside: whoever resumes it may have mended the testbed.
    """
    from dbos import DBOS, DBOSClient

    from bisector.engine.workflows import APPLICATION_VERSION, SET_ASIDE, JsonSerializer

    DBOS.migrate(url)
    client = DBOSClient(system_database_url=url, serializer=JsonSerializer())
    try:
        pending = client.list_workflows(status=["PENDING", "ENQUEUED"])
        found = None
        for status in pending:
            name = status.workflow_id
            ours = status.name == "bisection" and name.startswith(f"{bisection}.")
            if ours and status.app_version == APPLICATION_VERSION:
                steps = client.list_workflow_steps(name, load_output=False)
                found = name if all(step["function_name"] != SET_ASIDE for step in steps) else None
        for name in (status.workflow_id for status in pending):
            if found is None or (name != found and not name.startswith(f"{found}-trial-")):
                client.cancel_workflow(name)
        return found
    finally:
        client.destroy()
