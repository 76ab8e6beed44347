"""The runs of monitors, after the samples of a boot: what they saw is recorded and judges no commit."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Sequence

from bisector.engine.events import EventKind
from bisector.errors import PerfbisectError
from bisector.ports import Monitor, Session


def watched(
    session: Session,
    monitors: Sequence[Monitor],
    stop: threading.Event,
    tell: Callable[[EventKind, str], None],
) -> dict[str, str]:
    """Make the runs of all monitors; return them as a note for the record: 'monitors', JSON of results.

    What goes wrong is told, noted as absent, and ends the watching: monitors disturb what they watch. Empty
    if there are none, or if `stop` was set meanwhile.
    """
    found: list[dict[str, object]] = []
    for monitor in monitors:
        if stop.is_set():
            return {}
        tell("note", f"watching a run with {monitor.name}")
        try:
            observed = session.run_monitor(monitor)
        except PerfbisectError as error:
            if not stop.is_set():
                tell("trouble", f"{monitor.name}: {error.message}")
            found.append({"monitor": monitor.name, "absent": [error.message]})
            break
        found.append({**dataclasses.asdict(observed), "folder": str(observed.folder)})
    return {"monitors": json.dumps(found)} if found and not stop.is_set() else {}
