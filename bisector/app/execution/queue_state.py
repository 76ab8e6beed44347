"""The queue of a state folder or database: running and waiting bisections, with estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bisector.app.execution.following import Executors
from bisector.app.execution.forecast import ForecastBisection, forecast
from bisector.app.series.series_store import hour_caps
from bisector.engine.availability import why_not
from bisector.engine.shares.hour_counter import capped, waits_until
from bisector.model.stored_bisection import TO_EXECUTE

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.stored_bisection import Summary

_LEAST_LEFT = 0.05
"""Least share of an estimate that is left until the bisection has ended; the same as in `app.time_left`."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A bisection that is executed or waits.

    status: as lists show it: 'queued', 'running', or 'interrupted' for one whose executor was killed, which
    the next one goes on with. measures_on: testbeds with a live boot of it; prepares_on: others with a trial
    of it under way, whose kernel is built or boots; waits_for: those that it could use and others have, each
    with those others' ids; unusable: testbed -> why nobody may or can use it now; capped: why its owner's
    bisections wait.
    left: seconds until its next culprit is located or proven; begins, ends: as `forecast` expects it, seconds
    since the epoch; None where that is unknown.
    """

    summary: Summary
    status: str
    measures_on: tuple[str, ...]
    prepares_on: tuple[str, ...]
    waits_for: tuple[tuple[str, str], ...]
    unusable: Mapping[str, str]
    capped: str
    left: float | None
    begins: float | None
    ends: float | None


@dataclass(frozen=True, slots=True)
class Queue:
    """entries: as they are served, the oldest first of one priority. executor: who executes them, in words,
    None where nobody does. now: by the database's clock."""

    entries: Sequence[QueueEntry]
    executor: str | None
    now: float


def read_queue(wiring: Wiring) -> Queue:
    """Return the queue of the state folder or database."""
    if not wiring.has_store:
        return Queue((), None, wiring.clock.now())
    executors = Executors(wiring.settings.state_dir, wiring.shared_coordinator)
    holder = executors.find("")
    executes = holder is not None and holder.executes
    summaries = sorted(wiring.store.list(statuses=TO_EXECUTE), key=lambda one: (one.priority, one.created))
    coordinator = wiring.coordinator
    now = coordinator.now()
    until = capped(coordinator, hour_caps(wiring))
    dead = _of_dead_workers(wiring, executors.workers)
    unusable = {**dead, **why_not(coordinator)}
    killed = {
        one.id
        for one in summaries
        if one.status == "running" and not executors.is_executed(one.id, "running")
    }
    measures = {one.id: () if one.id in killed else one.progress.live for one in summaries}
    prepares = {
        one.id: tuple(name for name in wiring.store.trials(one.id)[1] if name not in measures[one.id])
        for one in summaries
        if one.status == "running" and one.id not in killed
    }
    has = {name: (*testbeds, *prepares.get(name, ())) for name, testbeds in measures.items()}
    users = {testbed: name for name, testbeds in has.items() for testbed in testbeds}
    reserved = {r.testbed: r.end for r in coordinator.reservations() if r.start <= now}
    drained = {status.name for status in coordinator.testbeds() if status.state != "good"} | dead.keys()
    free = {
        testbed: (reserved.get(testbed, math.inf) if testbed not in drained else math.inf)
        if testbed in unusable
        else now
        for one in summaries
        for testbed in one.testbeds
    }
    if not executes and len(killed) == sum(one.status == "running" for one in summaries):
        free = dict.fromkeys(free, math.inf)
    left = {one.id: _left(one, now) for one in summaries}
    expected = forecast(
        [
            ForecastBisection(
                one.id,
                one.owner,
                one.priority,
                frozenset(one.testbeds),
                left[one.id],
                until.get(one.owner, now),
            )
            for one in summaries
        ],
        free,
        now,
    )
    entries = [
        QueueEntry(
            one,
            "interrupted" if one.id in killed else one.status,
            measures[one.id],
            prepares.get(one.id, ()),
            tuple((name, users[name]) for name in one.testbeds if users.get(name, one.id) != one.id),
            {name: unusable[name] for name in one.testbeds if name in unusable},
            waits_until(one.owner, until[one.owner]) if one.owner in until else "",
            left[one.id],
            *expected[one.id],
        )
        for one in summaries
    ]
    return Queue(entries, str(holder) if executes else None, now)


def _left(summary: Summary, now: float) -> float | None:
    """Return the seconds of one testbed that are left of the last estimate."""
    progress = summary.progress
    if progress.left is None or progress.decided is None:
        return None
    done = max(0.0, now - progress.decided) * len(progress.live)
    return max(progress.left - done, _LEAST_LEFT * progress.left)


def _of_dead_workers(wiring: Wiring, workers: Sequence[str]) -> dict[str, str]:
    """Return the testbeds of this inventory whose worker does not live."""
    if wiring.shared_coordinator is None or wiring.settings.lab is None:
        return {}
    return {
        spec.name: f"its worker '{spec.variables.worker}' does not run"
        for spec in wiring.lab.testbeds
        if spec.variables.worker not in ("", *workers)
    }
