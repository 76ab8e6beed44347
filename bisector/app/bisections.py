"""Use cases of bisections: begin or resume one, run it, mark commits, discard samples, cancel it."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Literal

from bisector.app.accept import find_unfinished
from bisector.app.execution.following import concluded, find_executor, wait_for_turn
from bisector.engine.events import OnEvent
from bisector.engine.services import Services
from bisector.engine.state_lock import Busy
from bisector.engine.waiting import waiter
from bisector.errors import Interrupted, RecordsUnusable, RequestError
from bisector.model.commit_graph import CommitGraph, short_name
from bisector.model.decisions import Conclusion
from bisector.model.goal import Terms, Verdict
from bisector.model.records import Booted, Discarded, Marked
from bisector.model.stored_bisection import ENDED, NORMAL_PRIORITY, OPEN, REMOVING, Action, Stored, Summary
from bisector.schemas.request import Accepted, read_accepted
from bisector.store_ports import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from bisector.engine.others import Others

_BUSY_SECONDS = 0.2
"""Pause between two tries to execute what another process still holds: chosen, short against any boot."""

__all__ = ["ENDED", "REMOVING", "Stored", "begin", "cancel", "discard", "mark", "pause", "run"]


def begin(
    store: Store,
    accepted: Accepted,
    graph: CommitGraph,
    now: float,
    owner: str = "",
    priority: int | None = None,
) -> tuple[Stored, bool]:
    """Return the bisection for this request and whether it is new.

    An unfinished bisection of the same request is resumed; after a finished one a new one begins. owner: who
    begins it; priority: by default the normal one, or the one that it has.
    """
    name, status = find_unfinished(store, accepted)
    if status:
        known = store.load(name)
        if priority is not None and priority != known.priority:
            set_priority(store, known, priority, owner)
        return store.load(name), False
    new = Stored(
        id=name,
        created=now,
        request=accepted.model_dump_json(),
        status="new",
        graph=graph,
        priority=NORMAL_PRIORITY if priority is None else priority,
        owner=owner,
    )
    store.create(new)
    return new, True


def run(
    stored: Stored,
    services: Services,
    on_event: OnEvent,
    stop: threading.Event,
    others: Others | None = None,
    require: Callable[[], object] = lambda: None,
) -> Conclusion:
    """Run a bisection until it concludes; where another process works in the state folder, queue it there.

    others: how those are executed that others queue here; require: raises where we may not execute it.
    Raises Interrupted (resumable), RequestError, InfrastructureError.
    """
    from bisector.engine.executor import execute, signals, tidy

    if stored.conclusion is not None:
        tidy(stored, services, on_event, stop)
        return stored.conclusion
    conclusion, store = None, services.store
    find = partial(find_executor, services.state_dir, services.coordinator, stored.id, services.served_by)
    with waiter(services.state_dir, stored.id) as is_ours, signals(stop):
        while conclusion is None:
            try:
                if services.coordinator is not None and find() is not None:
                    raise Busy(None)
                require()
                execute(stored, services, on_event, stop, others)
            except Busy:
                conclusion = wait_for_turn(store, find, stored, on_event, stop, is_ours)
                stop.wait(_BUSY_SECONDS)  # the process that had it may need a moment to let go
            except RecordsUnusable as error:
                if stop.is_set():
                    raise _interrupted_without_records(stored.id, error) from error
                raise
            else:
                conclusion = concluded(store.load(stored.id))
    return conclusion


def _interrupted_without_records(bisection: str, error: RecordsUnusable) -> Interrupted:
    """Return the error of a bisection that was stopped while nothing could be written down."""
    return Interrupted(
        f"the bisection '{bisection}' is interrupted; nothing is lost",
        details="\n".join(filter(None, (error.message, error.details))),
        cure=error.cure,
    )


def mark(store: Store, stored: Stored, sha: str, spoken: Verdict, note: str = "") -> None:
    """Record what a person knows about a commit. spoken: in that person's words.

    Raises RequestError: not in range, it has ended, or the verdict contradicts an end or another mark.
    """
    _still_open(stored)
    accepted = read_accepted(stored.request)
    if accepted.night is not None:
        raise RequestError(
            f"'{stored.id}' belongs to the series '{accepted.night.series}' and takes no verdicts",
            cure="mark commits of a bisection; 'perfbisect list' shows them",
        )
    if accepted.attempt is not None:
        raise RequestError(
            f"'{stored.id}' compares three kernels and takes no verdicts",
            cure=f"mark commits of '{accepted.attempt.of}', the bisection that it is of",
        )
    terms = accepted.request.terms
    verdict = terms.turned(spoken)
    if sha not in stored.graph.shas:
        raise RequestError(
            f"the commit {short_name(sha)} is not in the range of '{stored.id}'",
            cure="'perfbisect log' shows the commits tested; any commit between good and bad can be marked",
        )
    commit = stored.graph.shas.index(sha)
    if verdict != "skip":
        _refuse_contradiction(store, stored, commit, verdict, terms)
    for end, name in ((stored.graph.good, terms.old), (stored.graph.bad, terms.new)):
        if verdict == "skip" and commit == end:
            raise RequestError(
                f"{short_name(sha)} cannot be skipped: it is the {name} end",
                cure=f"begin another bisection whose --{name} can be tested",
            )
    _append(store, stored, Marked(commit, verdict, note))


def _refuse_contradiction(
    store: Store, stored: Stored, commit: int, verdict: Literal["good", "bad"], terms: Terms
) -> None:
    """Raise RequestError if a good commit would contain a bad one: no culprit explains both."""
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
        both = "it" if other == commit else f"{short_name(graph.shas[other])}"
        relation = (
            "" if other == commit else ", which contains it," if verdict == "bad" else ", which it contains,"
        )
        raise RequestError(
            f"{short_name(graph.shas[commit])} cannot be {terms.turned(verdict)}: {both}{relation} {why}",
            cure="change that mark first, or mark this commit 'skip'; other ends are another bisection's",
        )


def _bad_first(commit: int, other: int, verdict: str) -> tuple[int, int]:
    return (commit, other) if verdict == "bad" else (other, commit)


def discard(store: Store, stored: Stored, kind: Literal["testbed", "boot"], name: str, note: str) -> None:
    """Discard the samples of a testbed or of one boot. Raises RequestError if there are none."""
    _still_open(stored)
    names = {getattr(record, kind) for _, record in store.records(stored.id) if isinstance(record, Booted)}
    if name not in names:
        raise RequestError(
            f"the bisection '{stored.id}' has no {kind} '{name}'",
            details=f"it has: {', '.join(sorted(names)) or 'none'}",
            cure=f"'perfbisect show {stored.id}' names every boot with its testbed",
        )
    _append(store, stored, Discarded(kind, name, note))


def _append(store: Store, stored: Stored, record: Marked | Discarded) -> None:
    """Record what a person says, unless the bisection has ended since it was loaded and nothing reads it.

    Raises RequestError.
    """
    if store.append_while_open(stored.id, record) is None:
        _still_open(store.load(stored.id))
        raise RequestError(
            f"the bisection '{stored.id}' has its result: nothing can be marked or discarded any more",
            cure=f"'perfbisect status {stored.id}' tells whether its end is written; if it was interrupted "
            f"there, 'perfbisect resume {stored.id}' ends it",
        )


def pause(store: Store, stored: Stored, by: str = "", why: str = "") -> None:
    """Pause a bisection until 'resume'; a process that runs it notices within a second, and lets go."""
    _set_open(store, stored, "paused", Action("paused", by, why))


def cancel(store: Store, stored: Stored, by: str = "", why: str = "") -> None:
    """End a bisection for good; a process that runs it notices within a second and cleans up."""
    _set_open(store, stored, "cancelled", Action("cancelled", by, why))


def set_priority(store: Store, stored: Stored | Summary, priority: int, by: str = "", why: str = "") -> None:
    """Serve a bisection before or after others, from its next boot on. Raises RequestError: it has ended."""
    _still_open(stored)
    store.set_priority(stored.id, priority, Action(f"given priority {priority}", by, why))


def _set_open(store: Store, stored: Stored, status: str, action: Action) -> None:
    """Change the status of a bisection that has not ended. Raises RequestError: it has, perhaps just now."""
    _still_open(stored)
    if not store.set_status(stored.id, status, expected=OPEN, action=action):
        _still_open(store.load(stored.id))


def _still_open(stored: Stored | Summary) -> None:
    if stored.status in ENDED:
        raise RequestError(
            f"the bisection '{stored.id}' has ended ({stored.status})",
            cure="'perfbisect list' shows those that go on; 'perfbisect start' begins another",
        )
