"""What is executed in a state folder, and what waits for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bisector.engine.state_lock import find_holder
from bisector.model.decisions import Measure
from bisector.model.records import Booted, Left
from bisector.model.stored_bisection import TO_EXECUTE
from bisector.schemas.request import read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.stored_bisection import Summary


@dataclass(frozen=True, slots=True)
class Entry:
    """A bisection that is executed or waits. measures_on: testbeds with a live boot of it.

    waits_for: testbeds that it could use and others measure on, each with those others' ids; left: seconds
    until its next culprit is located or proven, None where nobody can say yet; boots: so far.
    """

    summary: Summary
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
    holder = find_holder(wiring.settings.state_dir)
    found = [_entry(wiring, summary) for summary in reversed(wiring.store.list(statuses=TO_EXECUTE))]
    users = {testbed: entry.summary.id for entry in found for testbed in entry.measures_on}
    entries = [
        Entry(
            e.summary,
            e.testbeds,
            e.measures_on,
            tuple((t, users[t]) for t in e.testbeds if users.get(t, e.summary.id) != e.summary.id),
            e.left,
            e.boots,
        )
        for e in found
    ]
    return Queue(entries, str(holder) if holder is not None and holder.executes else None)


def _entry(wiring: Wiring, summary: Summary) -> Entry:
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
    return Entry(summary, testbeds, tuple(sorted(set(live.values()))), (), left, boots)
