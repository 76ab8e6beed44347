"""The runs of monitors, after the samples of a boot. What they record never decides about a commit.

What the functions of an emulated guest execute is counted during the samples, which counting does not
change. Without being asked for it is counted once for each end, each culprit and its parents, since reports
compare these.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from bisector.engine.events import EventKind
from bisector.errors import PerfbisectError
from bisector.model.decisions import Measure
from bisector.model.facts import MonitorResult
from bisector.ports import Job, Monitor, Session

COUNTERS = "counters"
"""The monitor of what functions execute, which has no runs of its own."""


def with_fresh_seed(job: Job) -> Job:
    """Return the job for an emulated guest with random numbers of its own."""
    return replace(job, environment={**job.environment, "seed": "fresh"})


def job_of_boot(job: Job, measure: Measure, had: Container[str]) -> Job:
    """Return what a boot is to do: functions are counted unasked where a report compares them.

    had: the monitors that have seen the commit on this testbed.
    """
    if measure.fresh_seed:
        job = with_fresh_seed(job)
    counting = job.counting
    if counting is None or not counting.profile or any(one.name == COUNTERS for one in job.monitors):
        return job
    if measure.purpose in ("verify", "certify") and COUNTERS not in had:
        return job
    return replace(job, counting=replace(counting, profile=False) if counting.metrics else None)


def run_monitors(
    session: Session,
    monitors: Sequence[Monitor],
    had: Container[str],
    stop: threading.Event,
    send: Callable[[EventKind, str], None],
) -> tuple[MonitorResult, ...]:
    """Make the runs of all monitors; return what they saw, nothing if `stop` was set meanwhile.

    had: the monitors that have seen this commit on this testbed; if any of `monitors` has, all have had their
    turn. A failure is sent as an event, recorded as absent, and ends the monitoring: monitors disturb what
    they watch.
    """
    results: list[MonitorResult] = []
    if session.facts.profiled and COUNTERS not in had and all(one.name != COUNTERS for one in monitors):
        results += _counted_unasked(session)
    for monitor in () if any(one.name in had for one in monitors) else monitors:
        if stop.is_set():
            return ()
        send("note", f"watching a run with {monitor.name}")
        try:
            results.append(session.run_monitor(monitor))
        except PerfbisectError as error:
            if not stop.is_set():
                send("trouble", f"{monitor.name}: {error.message}")
            results.append(MonitorResult(monitor.name, absent=(error.message,)))
            break
    return () if stop.is_set() else tuple(results)


def _counted_unasked(session: Session) -> list[MonitorResult]:
    """Return what functions executed; nothing, silently, where that failed: it was not asked for."""
    with contextlib.suppress(PerfbisectError):
        seen = session.run_monitor(Monitor(COUNTERS, ()))
        return [replace(seen, unasked=True)] if seen.seen else []
    return []
