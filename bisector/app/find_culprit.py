"""The use case of perfbisect: a request becomes a bisection that is run to its conclusion and reported."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bisector.adapters.system.files import write_atomically
from bisector.app import bisections
from bisector.app.accept import missing_monitors, workload_of
from bisector.app.artefacts import shared_files
from bisector.app.chores.write_reports import write_reports
from bisector.app.execution.bisection_services import bisection_services, missing_testbeds
from bisector.app.execution.queueing import queue_bisection
from bisector.app.execution.readiness import left_out, require_ready
from bisector.app.load_report import HOST, find_bisection, load_material
from bisector.app.mail.mail_chore import tell_end
from bisector.app.mail.notices import promise
from bisector.app.packages.accept_kernels import accept_request
from bisector.app.packages.listed_sources import source_of
from bisector.app.plan import expected_work
from bisector.app.series.series_store import hour_caps
from bisector.app.testbeds.testbed_choice import notes_on_choice
from bisector.app.testbeds.testbed_hosts import require_own
from bisector.app.watching.watch_bisection import labels
from bisector.app.wiring import Wiring
from bisector.engine.events import Event
from bisector.errors import InfrastructureError, Interrupted, RecordsUnusable, RequestError
from bisector.model.decisions import Conclusion
from bisector.model.format import count
from bisector.model.stored_bisection import RESTING, Action
from bisector.report import phrases
from bisector.schemas.request import Accepted, Request, read_accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bisector.app.execution.observer import Observer
    from bisector.app.mail.notices import Notice
    from bisector.app.time_left import ExpectedWork
    from bisector.engine.others import Others
    from bisector.engine.services import Services
    from bisector.model.commit_graph import CommitGraph
    from bisector.model.stored_bisection import Stored
    from bisector.report.report_model import Material


def find_culprit(
    wiring: Wiring,
    request: Request,
    observer: Observer,
    priority: int | None = None,
    notices: Sequence[Notice] = (),
) -> Material:
    """Find the commit that made a workload slower; return its report, which is also written to files.

    priority: by default the normal one; notices: who is told of the end. The same request goes on where an
    unfinished bisection stopped. Raises RequestError, InfrastructureError or Interrupted: it can be resumed.
    """
    stored, accepted = _begin(wiring, request, observer, priority)
    promise(wiring, stored.id, accepted.request.workload, notices)
    return _run_and_report(wiring, stored, accepted, observer, notices)


def queue(
    wiring: Wiring,
    request: Request,
    observer: Observer,
    priority: int | None = None,
    notices: Sequence[Notice] = (),
) -> Stored:
    """Let whoever executes bisections here find the culprit. Raises as `find_culprit`.

    With a database server that may be another host, whose worker says itself what it lacks.
    """
    here = wiring.settings.database is None
    stored, accepted = _begin(wiring, request, observer, priority, executes=here)
    promise(wiring, stored.id, accepted.request.workload, notices)
    queue_bisection(wiring, stored, note=observer.note)
    return stored


def _begin(
    wiring: Wiring, request: Request, observer: Observer, priority: int | None, *, executes: bool = True
) -> tuple[Stored, Accepted]:
    """Accept and store a request. executes: whether on this host, which must then have all that it takes."""
    try:
        accepted, graph = accept_request(wiring, request)
    except InfrastructureError:  # names one missing thing; `require_ready` names all
        if executes:
            require_ready(wiring, request)
        raise
    if executes:
        require_ready(wiring, accepted.request)
    chosen = notes_on_choice(wiring, request, workload_of(request))
    uncounted = left_out(wiring, accepted) if executes else []
    for note in (*chosen, *missing_monitors(accepted), *uncounted, *source_of(wiring, accepted).notes()):
        observer.note(f"note: {note}")
    now, owner, metric = wiring.clock.now(), wiring.settings.owner, accepted.the_goal().metric.name
    stored, is_new = bisections.begin(wiring.store, accepted, graph, now, owner, priority)
    known = f"{count(sum(graph.candidate), 'candidate')}, decided by {metric}, clock '{accepted.clock}'"
    observer.note(f"bisection {stored.id}: {'' if is_new else 'going on with '}{known}")
    if not accepted.kernels:
        observer.note(f"recipe {phrases.recipe(accepted.request.recipe, accepted.recipe_chosen)}")
    return stored, accepted


def try_change(wiring: Wiring, accepted: Accepted, graph: CommitGraph, observer: Observer) -> Material:
    """Measure whether a change mends a culprit; otherwise as `find_culprit`. See `app/attempts`."""
    stored = _begin_try(wiring, accepted, graph, observer, executes=True)
    return _run_and_report(wiring, stored, accepted, observer)


def queue_try(wiring: Wiring, accepted: Accepted, graph: CommitGraph, observer: Observer) -> Stored:
    """Let whoever executes bisections here measure whether a change mends a culprit; otherwise as `queue`."""
    stored = _begin_try(wiring, accepted, graph, observer, executes=wiring.settings.database is None)
    queue_bisection(wiring, stored, note=observer.note)
    return stored


def _begin_try(
    wiring: Wiring, accepted: Accepted, graph: CommitGraph, observer: Observer, *, executes: bool
) -> Stored:
    if executes:
        require_ready(wiring, accepted.request)
    now = wiring.clock.now()
    stored, is_new = bisections.begin(wiring.store, accepted, graph, now, wiring.settings.owner)
    observer.note(f"{stored.id}: {'' if is_new else 'going on with '}three kernels side by side")
    return stored


def find_to_resume(wiring: Wiring, identity: str | None) -> Stored:
    """Return the bisection to go on with, by default the latest that has not ended. Raises RequestError."""
    if identity is None:
        unfinished = [s for s in wiring.store.list() if s.status not in bisections.ENDED]
        if not unfinished:
            latest = find_bisection(wiring, None)  # raises if there are no bisections at all
            raise RequestError(
                f"there is nothing to resume: every bisection has ended, '{latest.id}' last",
                cure="'perfbisect list' shows them; 'perfbisect start' begins another",
            )
        stored = wiring.store.load(unfinished[0].id)
    else:
        stored = find_bisection(wiring, identity)
    if stored.status in ("cancelled", bisections.REMOVING):
        raise RequestError(
            f"the bisection '{stored.id}' was {'cancelled' if stored.status == 'cancelled' else 'removed'}",
            cure="'perfbisect start' with its request begins anew",
        )
    return stored


def resume(wiring: Wiring, identity: str | None, observer: Observer, reason: str = "") -> Material:
    """Go on with what `find_to_resume` finds, as `find_culprit`. reason: of the person who resumes it."""
    stored = find_to_resume(wiring, identity)
    accepted = read_accepted(stored.request)
    if stored.conclusion is None:
        require_ready(wiring, accepted.request)
    observer.note(f"bisection {stored.id}: going on")
    action = Action("resumed", wiring.settings.owner, reason)
    stored = replace(stored, status="interrupted") if stored.status == "paused" else stored
    wiring.store.set_status(stored.id, stored.status, expected=RESTING, action=action)
    return _run_and_report(wiring, stored, accepted, observer)


def _run_and_report(
    wiring: Wiring, stored: Stored, accepted: Accepted, observer: Observer, notices: Sequence[Notice] = ()
) -> Material:
    _record_host(wiring, stored.id)
    has_records = True
    try:
        try:
            _run(wiring, stored, accepted, observer)
        except Interrupted as error:  # without records it says so itself, and there is no end to tell
            has_records = not isinstance(error.__cause__, RecordsUnusable)
            raise
        except KeyboardInterrupt as error:  # before the engine listens for it
            how = f"the bisection '{stored.id}' is interrupted; nothing is lost"
            raise Interrupted(how, cure=f"perfbisect resume {stored.id}") from error
        finally:
            written = write_reports(wiring, stored.id, observer.note) if has_records else None
            shared_files.finish(wiring)
        material = written or load_material(wiring, stored.id)
        observer.concluded(material)
        return material
    finally:  # last: a mail server may keep one waiting for minutes
        if has_records:
            tell_end(wiring, stored.id, notices, observer.note)


def _run(wiring: Wiring, stored: Stored, accepted: Accepted, observer: Observer) -> Conclusion:
    """Run to the end, or wait for another process that works in this state folder, and watch it."""
    wiring.doing, wiring.stop = f"bisection '{stored.id}'", observer.stop
    expected = _expected(wiring, stored, accepted)
    with observer.progress(labels(wiring, stored, accepted), expected) as on_event:
        for name in missing_testbeds(wiring, accepted):
            observer.note(f"note: the testbed '{name}' is not in the inventory any more, and left out")
        services = bisection_services(wiring, accepted, threading.Event())
        own = partial(require_own, wiring, services.testbeds)
        return bisections.run(stored, services, on_event, observer.stop, others(wiring), own)


def others(
    wiring: Wiring, tell: Callable[[str, Event], None] = lambda name, event: None, worker: str = ""
) -> Others:
    """Return how bisections are executed that other processes have queued.

    tell: is given their events; worker: the name of ours, with a database server.
    """
    from bisector.app.chores.registered_chores import chores_of
    from bisector.app.execution.health_schedule import checks_for
    from bisector.app.execution.inventory_watch import INVENTORY, InventoryWatch
    from bisector.engine.others import Others

    inventory = InventoryWatch(wiring, worker, lambda text: tell(INVENTORY, Event("trouble", text)))

    def open_(stored: Stored, stop: threading.Event) -> Services:
        accepted = read_accepted(stored.request)
        source_of(wiring, accepted)  # says whether its repository is trusted
        _record_host(wiring, stored.id)
        return bisection_services(
            wiring, accepted, stop, inventory.of_bisection(stored.id, accepted.testbeds)
        )

    def ended(name: str) -> None:
        write_reports(wiring, name, lambda text: tell(name, Event("trouble", text)))

    checks, chores = checks_for(wiring, worker), chores_of(wiring, worker)
    return Others(
        lambda one: inventory.of_bisection(one.id, one.testbeds), open_, tell, ended, checks, chores
    )


def serve(
    wiring: Wiring,
    tell: Callable[[str, Event], None],
    stop: threading.Event,
    *,
    until_idle: bool,
    name: str | None = None,
) -> None:
    """Execute what is queued until asked to stop, or until nothing is left.

    tell: is given ids and events; name: of the worker, by default this host's. Raises Busy, RequestError,
    InfrastructureError. Records that cannot be written once `stop` is set are told, for it has ended then.
    """
    from bisector.engine import executor
    from bisector.engine.availability import Availability
    from bisector.engine.shares.hour_counter import HourCounter

    known_by = name or socket.gethostname()
    wiring.doing, wiring.stop = f"the queue, as worker '{known_by}'", stop

    def take_testbeds() -> None:  # only once joined: a refused worker must not take another host's testbeds
        require_own(wiring, [spec.name for spec in wiring.lab.testbeds_of(known_by)], known_by)

    shared_files.require_store(wiring)
    shared_files.keep_earlier_boots(wiring)
    try:
        executor.serve(
            wiring.store,
            wiring.settings.state_dir,
            others(wiring, tell, known_by),
            stop,
            until_idle=until_idle,
            coordinator=wiring.shared_coordinator,
            name=known_by,
            why_not=Availability(wiring.coordinator).why_not,
            hours=HourCounter(wiring.coordinator, partial(hour_caps, wiring)),
            joined=take_testbeds,
        )
    except RecordsUnusable as error:
        if not stop.is_set():
            raise
        tell(known_by, Event("trouble", error.message))
    finally:
        shared_files.finish(wiring)


def _expected(wiring: Wiring, stored: Stored, accepted: Accepted) -> ExpectedWork | None:
    try:
        return expected_work(wiring, accepted, stored.graph)
    except RequestError:  # nothing to estimate, such as a range that is all untestable
        return None


def _record_host(wiring: Wiring, identity: str) -> None:
    """Write down what this machine is, once a bisection, so that the report shows the host that measured."""
    from bisector.adapters.system.host_requirements import description

    path = wiring.bisection_folder(identity) / HOST
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(description(), indent=2) + "\n")
