"""What interfaces ask of the engine: begin or take up a bisection, run it, tell it what a person learnt."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from bisector.engine.events import Event, EventKind, OnEvent, decision_event
from bisector.engine.services import Services
from bisector.engine.state_lock import Busy, runner
from bisector.errors import InfrastructureError, RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Measure
from bisector.model.goal import Terms, Verdict
from bisector.model.records import Booted, Built, Discarded, Marked, Ran, Record, RunFailed
from bisector.model.stored_bisection import Stored
from bisector.schemas.request import Accepted, read_accepted
from bisector.store_ports import Store

__all__ = ["Busy", "Stored", "begin", "cancel", "discard", "follow", "mark", "run", "runner"]

REMOVING = "removing"
"""The status of a bisection whose removal has begun: it is over, and part of it may be gone already."""
ENDED = ("done", "cancelled", REMOVING)
"""Statuses after which a bisection is over; 'new', 'running', 'interrupted' and 'failed' can be resumed."""
_FOLLOW_SECONDS = 0.5


def begin(store: Store, accepted: Accepted, graph: CommitGraph, now: float) -> tuple[Stored, bool]:
    """Return the bisection for this request and whether it is new.

    An unfinished one of the same request is taken up; after a finished one a new one begins.
    """
    name, status = _latest(store, accepted)
    if status:
        return store.load(name), False
    new = Stored(id=name, created=now, request=accepted.model_dump_json(), status="new", graph=graph)
    store.create(new)
    return new, True


def unfinished(store: Store, accepted: Accepted) -> str | None:
    """Return the id of the unfinished bisection for this request, if there is one."""
    name, status = _latest(store, accepted)
    return name if status else None


def _latest(store: Store, accepted: Accepted) -> tuple[str, str]:
    """Return the id and status of the request's unfinished bisection, or an id that is free and no status."""
    plain = accepted.workload.replace("/", "-")  # an id is the name of a folder and part of a URL
    base = f"{plain}-{accepted.identity()}"
    for number in itertools.count(1):
        name = base if number == 1 else f"{base}-{number}"
        try:
            status = store.status(name)
        except RequestError:
            return name, ""
        if status not in ENDED:
            return name, status
    raise AssertionError("the loop returns")


def run(stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> Conclusion:
    """Run a bisection until it concludes.

    Raises Busy when another process has the state folder, Interrupted (resumable), InfrastructureError.
    """
    from bisector.engine.executor import execute, tidy

    if stored.conclusion is not None:
        tidy(stored, services)
        return stored.conclusion
    execute(stored, services, on_event, stop)
    return _conclusion(services.store.load(stored.id))


def follow(store: Store, bisection: str, running: Callable[[], bool], on_event: OnEvent) -> Conclusion:
    """Watch a bisection that another process runs, until it ends; tells what happens from now on.

    Raises InfrastructureError if it stops without a conclusion.
    """
    tally: Counter[str] = Counter()
    commits: dict[str, int] = {}
    seen, told, first = 0, 0, True
    while True:
        alive = running()  # asked before reading, so that nothing written before the end is missed
        for number, record in store.records(bisection, after=seen):
            seen = number
            tally[type(record).__name__] += 1
            event = _event(record, tally, commits)
            if event is not None and not first:
                on_event(event)
        decisions = [(n, d) for n, d in store.decisions(bisection) if n > told]
        for number, decision in decisions[-1:] if first else decisions:
            told = number
            if isinstance(decision, Measure):
                on_event(_with_totals(decision_event(decision, "another process measures"), tally))
        first = False
        if not alive:
            return _conclusion(store.load(bisection))
        time.sleep(_FOLLOW_SECONDS)


def _event(record: Record, tally: Counter[str], commits: dict[str, int]) -> Event | None:
    """Return what a record of another process tells, or None."""
    kind: EventKind
    seconds: float | None = None
    match record:
        case Built():
            kind, commit, seconds = "build", record.commit, record.seconds
            text = "the kernel is built" if record.ok else record.failure
        case Booted():
            commits[record.boot] = commit = record.commit
            kind, seconds = "boot", record.seconds
            text = "booted" if record.ok else record.failure
        case Ran():
            kind, commit, seconds = "run", commits.get(record.boot, -1), record.seconds
            text = ", ".join(f"{name} {value:.6g}" for name, value in record.values.items())
        case RunFailed():
            kind, commit, text = "trouble", commits.get(record.boot, -1), record.failure
        case _:
            return None
    event = Event(kind, text, None if commit < 0 else commit, seconds=seconds)
    return _with_totals(event, tally)


def _with_totals(event: Event, tally: Counter[str]) -> Event:
    """Return the event with the totals so far. tally: how many records of each type there are."""
    return replace(event, runs=tally["Ran"], boots=tally["Booted"], builds=tally["Built"])


def mark(store: Store, stored: Stored, sha: str, said: Verdict, note: str = "") -> None:
    """Record what a person knows about a commit. said: in the person's terms.

    Raises RequestError: not in range, it has ended, or the verdict contradicts an end or another mark.
    """
    _still_open(stored)
    terms = read_accepted(stored.request).request.terms
    verdict = terms.turned(said)
    if sha not in stored.graph.shas:
        raise RequestError(
            f"the commit {sha[:12]} is not in the range of '{stored.id}'",
            cure="'perfbisect log' shows the commits tested; any commit between good and bad can be marked",
        )
    commit = stored.graph.shas.index(sha)
    if verdict != "skip":
        _refuse_contradiction(store, stored, commit, verdict, terms)
    for end, name in ((stored.graph.good, terms.old), (stored.graph.bad, terms.new)):
        if verdict == "skip" and commit == end:
            raise RequestError(
                f"{sha[:12]} cannot be skipped: it is the {name} end",
                cure=f"begin another bisection whose --{name} can be tested",
            )
    store.append(stored.id, Marked(commit, verdict, note))


def _refuse_contradiction(
    store: Store, stored: Stored, commit: int, verdict: Literal["good", "bad"], terms: Terms
) -> None:
    """Raise RequestError where a bad commit would be contained in a good one: no culprit explains both."""
    from bisector.model.dag import CommitDag

    graph, dag = stored.graph, CommitDag(stored.graph)
    marks: dict[int, Verdict] = {}
    for _, record in store.records(stored.id):
        if isinstance(record, Marked):
            marks[record.commit] = record.verdict
    known = {
        c: f"is marked {terms.turned(known)}"
        for c, known in marks.items()
        if c != commit and known not in ("skip", verdict)
    }
    if verdict == "bad" and not graph.candidate[commit]:
        known = {graph.good: f"is the {terms.old} end"}
    elif verdict == "good" and commit == graph.bad:
        known = {graph.bad: f"is the {terms.new} end"}
    else:
        known = {c: why for c, why in known.items() if dag.is_ancestor(*_bad_first(commit, c, verdict))}
    for other, why in known.items():
        both = "it" if other == commit else f"{graph.shas[other][:12]}"
        relation = (
            "" if other == commit else ", which contains it," if verdict == "bad" else ", which it contains,"
        )
        raise RequestError(
            f"{graph.shas[commit][:12]} cannot be {terms.turned(verdict)}: {both}{relation} {why}",
            cure="change that mark first, or mark this commit 'skip'; other ends are another bisection's",
        )


def _bad_first(commit: int, other: int, verdict: str) -> tuple[int, int]:
    return (commit, other) if verdict == "bad" else (other, commit)


def discard(store: Store, stored: Stored, kind: Literal["testbed", "boot"], name: str, note: str) -> None:
    """Throw away the samples of a testbed or of one boot. Raises RequestError if there are none."""
    _still_open(stored)
    names = {getattr(record, kind) for _, record in store.records(stored.id) if isinstance(record, Booted)}
    if name not in names:
        raise RequestError(
            f"the bisection '{stored.id}' has no {kind} '{name}'",
            details=f"it has: {', '.join(sorted(names)) or 'none'}",
            cure=f"'perfbisect show {stored.id}' names every boot with its testbed",
        )
    store.append(stored.id, Discarded(kind, name, note))


def cancel(store: Store, stored: Stored) -> None:
    """End a bisection for good; a process that runs it notices within a second and cleans up."""
    _still_open(stored)
    store.set_status(stored.id, "cancelled")


def _still_open(stored: Stored) -> None:
    if stored.status in ENDED:
        raise RequestError(
            f"the bisection '{stored.id}' has ended ({stored.status})",
            cure="'perfbisect list' shows those that go on; 'perfbisect start' begins another",
        )


def _conclusion(stored: Stored) -> Conclusion:
    if stored.conclusion is None:
        raise InfrastructureError(
            f"the bisection '{stored.id}' stopped without a conclusion ({stored.status})",
            cure=f"perfbisect resume {stored.id}",
        )
    return stored.conclusion
