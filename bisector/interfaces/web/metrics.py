"""Numbers for Prometheus: what is stored, executed and waiting, the testbeds, and the work that was done.

Work is counted from when this server first saw a bisection executed, a little more at each scrape: to count
the records of all bisections would take seconds. Prometheus' rate() and increase() want no more.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bisector.app.execution.current_status import current_statuses
from bisector.model.leases import HEARTBEAT_TTL_SECONDS, TESTBED_STATES
from bisector.model.records import Booted, Built, Ran
from bisector.model.stored_bisection import TO_EXECUTE

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

_SECONDS_OF_AN_HOUR = 3600.0


@dataclass
class CountedWork:
    """The work done in bisections that were executed while this server ran."""

    builds: int = 0
    boots: int = 0
    runs: int = 0
    seconds: float = 0.0
    _seen: dict[str, int] = field(default_factory=dict)
    _executed: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def poll(self, wiring: Wiring) -> None:
        """Count what was recorded since the last call."""
        with self._lock:
            executed = {summary.id for summary in wiring.store.list(statuses=TO_EXECUTE)}
            for name in executed | self._executed:  # what has ended since the last call, once more
                for number, record in wiring.store.records(name, after=self._seen.get(name, 0)):
                    self._seen[name] = number
                    self.builds += isinstance(record, Built)
                    self.boots += isinstance(record, Booted)
                    self.runs += isinstance(record, Ran)
                    self.seconds += record.seconds if isinstance(record, Built | Booted | Ran) else 0.0
            self._executed = executed


class Numbers(Collector):
    """prometheus_client.registry.Collector of one scrape."""

    def __init__(self, wiring: Wiring, work: CountedWork) -> None:
        self._wiring, self._work = wiring, work

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        wiring, work = self._wiring, self._work
        statuses = Counter(current_statuses(wiring, wiring.store.list()))
        stored = GaugeMetricFamily("perfbisect_bisections", "Stored bisections by status.", labels=["status"])
        for status, number in sorted(statuses.items()):
            stored.add_metric([status], number)
        yield stored
        yield GaugeMetricFamily("perfbisect_queue_length", "Bisections that wait.", statuses["queued"])
        known = {testbed.name: testbed.state for testbed in wiring.coordinator.testbeds()}
        states = Counter(known.get(spec.name, "good") for spec in wiring.lab.testbeds)
        testbeds = GaugeMetricFamily("perfbisect_testbeds", "Testbeds by state.", labels=["state"])
        for state in TESTBED_STATES:
            testbeds.add_metric([state], states[state])
        yield testbeds
        living = [
            one
            for one in wiring.coordinator.executors()
            if not one.fenced and one.silent < HEARTBEAT_TTL_SECONDS
        ]
        yield GaugeMetricFamily("perfbisect_workers_alive", "Executors heard of lately.", len(living))
        work.poll(wiring)
        for name, number in (("builds", work.builds), ("boots", work.boots), ("runs", work.runs)):
            yield CounterMetricFamily(f"perfbisect_{name}", f"{name.capitalize()} that ended.", number)
        hours = work.seconds / _SECONDS_OF_AN_HOUR
        yield CounterMetricFamily("perfbisect_machine_hours", "Hours of builds, boots and runs.", hours)
