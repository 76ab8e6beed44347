"""What is executed in a state folder, and what waits for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bisector.app.execution.following import find_executor, is_being_executed
from bisector.model.decisions import Measure
from bisector.model.records import Booted, Left
from bisector.model.stored_bisection import TO_EXECUTE
from bisector.schemas.request import read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.stored_bisection import Summary


@dataclass(frozen=True, slots=True)
class Entry:
    """A bisection that is executed or waits.

    status: 'queued', 'running', or 'killed' for one whose executor was killed. measures_on: testbeds with a
    live boot of it; waits_for: those that it could use and others measure on, each with those others' ids;
    left: seconds until its next culprit is located or proven, None where nobody can say; boots: so far.
    """

    summary: Summary
    status: str
    testbeds: tuple[str, ...]
    measures_on: tuple[str, ...]
    waits_for: tuple[tuple[str, str], ...]
    left: float | None
    boots: int


@dataclass(frozen=True, slots=True)
class Queue:
    """entries: the oldest first. executor: who executes them, in words, None where nobody does."""

    entries: Sequence[Entry]
    executor: str | None


def read_queue(wiring: Wiring) -> Queue:
    """Return the queue of the state folder."""
    if not wiring.has_store:
        return Queue((), None)
    coordinator = wiring.shared_coordinator
    holder = find_executor(wiring.settings.state_dir, coordinator, "")
    executes = holder is not None and holder.executes
    state_dir = wiring.settings.state_dir

    def is_executed(summary: Summary) -> bool:
        return is_being_executed(state_dir, coordinator, summary.id, summary.status)

    summaries = wiring.store.list(statuses=TO_EXECUTE)
    found = [_entry(wiring, summary, is_executed(summary)) for summary in reversed(summaries)]
    users = {testbed: entry.summary.id for entry in found for testbed in entry.measures_on}

    def waits_for(entry: Entry) -> tuple[tuple[str, str], ...]:
        own = entry.summary.id
        return tuple((name, users[name]) for name in entry.testbeds if users.get(name, own) != own)

    entries = [replace(entry, waits_for=waits_for(entry)) for entry in found]
    return Queue(entries, str(holder) if executes else None)


def _entry(wiring: Wiring, summary: Summary, executes: bool) -> Entry:
    store = wiring.store
    live: dict[str, str] = {}
    boots = 0
    for _, record in store.records(summary.id):
        if isinstance(record, Booted) and record.ok:
            boots += 1
            live[record.boot] = record.testbed
        elif isinstance(record, Left):
            live.pop(record.boot, None)
    decided = [decision for _, decision in store.decisions(summary.id)]
    last = decided[-1] if decided else None
    left = last.left if isinstance(last, Measure) else None
    testbeds = read_accepted(store.load(summary.id).request).testbeds
    killed = summary.status == "running" and not executes
    measures_on = () if killed else tuple(sorted(set(live.values())))
    status = "killed" if killed else summary.status
    return Entry(summary, status, testbeds, measures_on, (), left, boots)
