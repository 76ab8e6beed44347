"""The runs of monitors, after the samples of a boot: what they saw is recorded and judges no commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from bisector.engine.events import EventKind
from bisector.errors import PerfbisectError
from bisector.model.facts import MonitorResult
from bisector.ports import Monitor, Session


def run_monitors(
    session: Session,
    monitors: Sequence[Monitor],
    stop: threading.Event,
    send: Callable[[EventKind, str], None],
) -> tuple[MonitorResult, ...]:
    """Make the runs of all monitors; return what they saw, nothing if `stop` was set meanwhile.

    A failure is sent as an event, recorded as absent, and ends the monitoring: monitors disturb what they
    watch.
    """
    results: list[MonitorResult] = []
    for monitor in monitors:
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
