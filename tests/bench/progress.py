"""How true the time to go is: searches that were recorded are replayed, and what was said is compared.

python -m tests.bench.progress [--each] STATE...

STATE: folders of states. Times come from the records: a boot tells when it began, a run when it ended, a
build how long it took. At each decision, and every 15 seconds between two events, the time to go is asked
for, as the terminal shows it, and divided by the time that the rest really took. What a search expects at
first comes from the searches before it of the same folder. Pauses between `start` and `resume` are left out.
How many files of a build are compiled is not recorded, so the replay knows less than the terminal did.
--each prints each estimate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app.plan import CACHED_SECONDS, GUESSED, ActionSeconds, measured_seconds, work_of
from bisector.app.time_left import ExpectedWork, TimeLeft
from bisector.engine.events import Event, decision_event
from bisector.model.decisions import Decision, Measure
from bisector.model.records import Booted, Built, Ran, Record
from bisector.model.stored_bisection import Stored
from bisector.schemas.request import read_accepted
from bisector.simulation.estimate import estimate

_BETWEEN_SECONDS = 15.0
_PAUSE_SECONDS = 60.0
"""A longer time between two records than what they tell of was a pause: nothing was running."""
_SHORT_SECONDS = 10.0
"""A difference below this is nothing that a person waits for."""


def events(records: Sequence[tuple[int, Record | Decision]]) -> Iterator[tuple[float, Event]]:
    """Yield the events of a search with their times, pauses left out, from what was recorded, in order."""
    first = next(r.at for _, r in records if isinstance(r, Booted))
    now = first - sum(r.seconds for _, r in records[:3] if isinstance(r, Built))
    paused = 0.0

    def advance(to: float) -> float:
        nonlocal paused
        if to - paused - now > _PAUSE_SECONDS:
            paused += to - paused - now
        return max(to - paused, now)

    for _, record in records:
        match record:
            case Measure():
                yield now, decision_event(record, "")
            case Built():
                now += 0.0 if record.cached else record.seconds
                yield (
                    now,
                    Event("build" if record.ok else "trouble", "", record.commit, seconds=record.seconds),
                )
            case Booted():
                now = advance(record.at) + record.seconds
                yield now, Event("boot" if record.ok else "trouble", "", seconds=record.seconds)
            case Ran():
                now = advance(record.at)
                yield now, Event("warmup" if record.warmup else "run", "", seconds=record.seconds)
            case _:
                pass


def replay(expected: ExpectedWork, happened: Sequence[tuple[float, Event]]) -> list[tuple[float, float]]:
    """Return (seconds to go as estimated, as they were) for each moment that is asked for."""
    start, end = happened[0][0], happened[-1][0]
    left = TimeLeft(expected, start)
    asked = start
    found = []
    for at, event in happened:
        while asked + _BETWEEN_SECONDS < at:
            asked += _BETWEEN_SECONDS
            found.append((left.seconds(asked), end - asked))
        left.take(event, at)
        if event.kind == "decision":
            asked = at
            found.append((left.seconds(at), end - at))
    return found


def expect(stored: Stored, seconds: ActionSeconds, *, cached: bool) -> ExpectedWork:
    """Return what a search expected when it began. cached: whether the kernels of the ends were there."""
    accepted = read_accepted(stored.request)
    candidates = sum(stored.graph.candidate) - len(stored.graph.untestable)
    found = estimate(
        max(candidates, 1),
        accepted.the_goal(),
        build_seconds=seconds.build,
        boot_seconds=seconds.boot,
        run_seconds=seconds.run,
        testbeds=len(accepted.testbeds),
    )
    return work_of(found, replace(seconds, build=CACHED_SECONDS) if cached else seconds)


def main() -> None:
    """Replay every search of the folders that has ended."""
    words = [word for word in sys.argv[1:] if word != "--each"]
    pairs: list[tuple[float, float]] = []
    for folder in map(Path, words):
        store, seconds = SqlStore(open_state_file(folder / "perfbisect.sqlite")), GUESSED
        for summary in reversed(store.list()):
            stored, records = store.load(summary.id), store.records(summary.id)
            if stored.conclusion is None or not any(isinstance(r, Booted) for _, r in records):
                continue
            happened = list(
                events(sorted([*records, *store.decisions(summary.id)], key=lambda pair: pair[0]))
            )
            ends = [r.cached for _, r in records if isinstance(r, Built)][:2]
            found = replay(expect(stored, seconds, cached=all(ends)), happened)
            ending, took = stored.conclusion.ending.value, found[0][1]
            print(f"{folder} {summary.id} ({ending}), {took:.0f} s: {told(found)}")
            if "--each" in sys.argv:
                print("\n".join(f"    {said:7.0f} s said, {was:7.0f} s left" for said, was in found))
            pairs += found
            seconds = measured_seconds([record for _, record in records]) or seconds
    print(f"all: {told(pairs)}")


def told(pairs: Sequence[tuple[float, float]]) -> str:
    """Return how often estimates were right, in words."""
    said, was = np.array(pairs).T
    within = np.abs(np.log(np.maximum(said, 1e-3) / np.maximum(was, 1e-3))) <= np.log(1.5)
    near = within | (np.abs(said - was) <= _SHORT_SECONDS)
    return (
        f"{within.mean():.0%} of {len(pairs)} estimates within a factor of 1.5, "
        f"{near.mean():.0%} within that or {_SHORT_SECONDS:.0f} s"
    )


if __name__ == "__main__":
    main()
