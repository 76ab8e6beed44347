"""The session of a guest: it is suspended between runs and destroyed at the end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bisector.adapters.guest.counting.counted_runs import MONITOR, CountedRuns
from bisector.adapters.guest.libvirt_connection import Domain
from bisector.adapters.guest.liveness import Liveness
from bisector.adapters.parsers.workload_output import ratios
from bisector.errors import InfrastructureError, TestbedLost
from bisector.model.facts import MonitorResult
from bisector.ports import BootFacts, MetricSpec, Monitor, RunResult, Session

log = logging.getLogger(__name__)


@dataclass(slots=True)
class GuestSession:
    """A session that may suspend its guest between runs; see domain_xml about sleep=off.

    metrics: of the job, for ratios of what is counted; needed: whether runs say nothing without what is
    counted; uncounted: why nothing is; module_symbols: asks the agent, see `AgentSession`.
    """

    facts: BootFacts
    inner: Session
    domain: Domain
    suspend_between_runs: bool
    _held: contextlib.ExitStack
    counted: CountedRuns | None = None
    metrics: tuple[MetricSpec, ...] = ()
    needed: bool = False
    uncounted: str = ""
    module_symbols: Callable[[], str] = str
    _suspended: bool = False
    _left: bool = False

    def run(self, index: int) -> RunResult:
        """Resume the guest for one run. Raises as `ports.Session.run`."""
        with self._resumed():
            result = self.inner.run(index)
        if self.counted is None:
            return result
        try:
            counted = self.counted.take(result.number, self._cmdline)
        except TestbedLost as error:
            if self.needed:
                raise
            log.warning("%s: %s", error.message, error.details)
            self.counted, self.uncounted = None, error.message
            return result
        values = {**result.values, **counted}
        return replace(result, values={**values, **ratios(values, self.metrics)})

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        """Resume the guest for the runs of a monitor. Raises as `ports.Session.run_monitor`."""
        if monitor.name == MONITOR:  # counted during the samples: the agent has nothing to run
            if self.counted is None:
                return MonitorResult(MONITOR, absent=(self.uncounted or "nothing was counted",))
            return self.counted.profile(self._cmdline, self._module_symbols)
        with self._resumed():
            return self.inner.run_monitor(monitor)

    def _module_symbols(self) -> str:
        with self._resumed():
            return self.module_symbols()

    @property
    def _cmdline(self) -> str:
        return self.facts.facts.get("cmdline", "")

    @contextlib.contextmanager
    def _resumed(self) -> Iterator[None]:
        """Resume the guest for the block, and suspend it afterwards unless the block raises."""
        if self._left:
            raise TestbedLost("the guest of this boot has been ended")
        if self._suspended:
            try:
                self.domain.resume()
            except InfrastructureError as error:
                raise TestbedLost("the suspended guest cannot be resumed", details=error.details) from error
            self._suspended = False
        yield
        if self.suspend_between_runs:
            try:
                self.domain.suspend()
                self._suspended = True
            except InfrastructureError as error:  # the guest runs on, which only costs host time
                log.warning("%s: %s", error.message, error.details)

    def leave(self) -> None:
        """End the guest. Never raises."""
        if self._left:
            return
        self._left = True
        self.inner.leave()
        self.domain.destroy()
        self._held.close()


@contextlib.contextmanager
def destroying_on_failure(liveness: Liveness, domain: Domain) -> Iterator[None]:
    """End the guest of a boot that fails. Raises TestbedLost if it was taken away, else what was raised."""
    try:
        yield
    except BaseException as error:
        lost = liveness.lost() if isinstance(error, InfrastructureError) else None
        domain.destroy()
        if lost is not None and not isinstance(error, TestbedLost):
            raise lost from error
        raise
