"""Boots that have not ended: what begins a boot and what ends it is defined here alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from bisector.model.decisions import Decision
from bisector.model.records import Booted, Left, Record, RunFailed


def live_boots(events: Iterable[Record | Decision]) -> Mapping[str, str]:
    """Return boot -> testbed of the boots that have not ended after these events, the oldest first."""
    return reduce(live_after, events, {})


def live_after(live: Mapping[str, str], event: Record | Decision) -> Mapping[str, str]:
    """Return the boots that have not ended after one more event; the same object where nothing changes."""
    match event:
        case Booted() if event.ok:
            return {**live, event.boot: event.testbed}
        case Left() | RunFailed() if event.boot in live:  # a failure of the workload ends its boot
            return {boot: testbed for boot, testbed in live.items() if boot != event.boot}
    return live
