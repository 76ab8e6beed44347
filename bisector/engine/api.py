"""What interfaces ask of the engine: begin or take up a bisection, run it, tell it what a person learnt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

from bisector.core.model import EXIT_CODES, CommitGraph, Conclusion, Discarded, Marked
from bisector.engine.events import Event, OnEvent
from bisector.engine.executor import Busy, execute, runner
from bisector.engine.services import Services
from bisector.errors import InfrastructureError, RequestError
from bisector.ports import Store, Stored
from bisector.spec.request import Accepted

__all__ = ["Busy", "Stored", "begin", "cancel", "discard", "exit_code", "follow", "mark", "run", "runner"]

_FOLLOW_SECONDS = 0.5


def begin(store: Store, accepted: Accepted, graph: CommitGraph, now: float) -> tuple[Stored, bool]:
    """Return the bisection for this request and whether it is new.

    An unfinished one of the same request is taken up; after a finished one a new one begins.
    """
    base = f"{accepted.workload}-{accepted.identity()}"
    used = {stored.id: stored for stored in store.list() if stored.id.startswith(base)}
    for stored in used.values():
        if stored.status not in ("done", "cancelled"):
            return stored, False
    number = len(used) + 1
    new = Stored(
        id=base if number == 1 else f"{base}-{number}",
        created=now,
        request=accepted.model_dump_json(),
        status="new",
        graph=graph,
    )
    store.create(new)
    return new, True


def run(stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> Conclusion:
    """Run a bisection until it concludes.

    Raises Busy when another process has the state folder, Interrupted (resumable), InfrastructureError.
    """
    if stored.conclusion is not None:
        return stored.conclusion
    execute(stored, services, on_event, stop)
    return _conclusion(services.store.load(stored.id))


def follow(store: Store, bisection: str, running: Callable[[], bool], on_event: OnEvent) -> Conclusion:
    """Watch a bisection that another process runs, until it ends. Raises InfrastructureError if it stops."""
    seen = 0
    while running():
        for number, decision in store.decisions(bisection):
            if number > seen:
                seen = number
                reason = getattr(decision, "reason", "")
                on_event(Event("decision", "decided", getattr(decision, "commit", None), reason))
        time.sleep(_FOLLOW_SECONDS)
    return _conclusion(store.load(bisection))


def exit_code(conclusion: Conclusion) -> int:
    """Return the exit code that an ending stands for."""
    return EXIT_CODES[conclusion.ending]


def mark(
    store: Store, stored: Stored, sha: str, verdict: Literal["good", "bad", "skip"], note: str = ""
) -> None:
    """Record what a person knows about a commit. Raises RequestError: not in range, or it has ended."""
    _still_open(stored)
    if sha not in stored.graph.shas:
        raise RequestError(
            f"the commit {sha[:12]} is not in the range of '{stored.id}'",
            cure="'perfbisect log' shows the commits tested; any commit between good and bad can be marked",
        )
    store.append(stored.id, Marked(stored.graph.shas.index(sha), verdict, note))


def discard(store: Store, stored: Stored, kind: Literal["testbed", "boot"], name: str, note: str) -> None:
    """Throw away the samples of a testbed or of one boot. Raises RequestError if there are none."""
    _still_open(stored)
    names = {
        getattr(record, kind)
        for _, record, _ in store.records(stored.id)
        if hasattr(record, "testbed") and hasattr(record, "boot")
    }
    if name not in names:
        raise RequestError(
            f"the bisection '{stored.id}' has no {kind} '{name}'",
            details=f"it has: {', '.join(sorted(names)) or 'none'}",
        )
    store.append(stored.id, Discarded(kind, name, note))


def cancel(store: Store, stored: Stored) -> None:
    """End a bisection for good; a process that runs it notices within a second and cleans up."""
    _still_open(stored)
    store.set_status(stored.id, "cancelled")


def _still_open(stored: Stored) -> None:
    if stored.status in ("done", "cancelled"):
        raise RequestError(f"the bisection '{stored.id}' has ended ({stored.status})")


def _conclusion(stored: Stored) -> Conclusion:
    if stored.conclusion is None:
        raise InfrastructureError(
            f"the bisection '{stored.id}' stopped without a conclusion ({stored.status})",
            cure=f"perfbisect resume {stored.id}",
        )
    return stored.conclusion
