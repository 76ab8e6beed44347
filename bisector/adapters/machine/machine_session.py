"""A live boot on a machine: a failure in it is examined before anybody is blamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bisector.adapters.machine.run_watch import RunWatch
from bisector.adapters.system.channel import LineClosed
from bisector.errors import BootFailed, PerfbisectError, TestbedLost, WorkloadFailed
from bisector.model.facts import MonitorResult
from bisector.ports import BootFacts, Monitor, RunResult, Session


@dataclass(slots=True)
class MachineSession:
    """`ports.Session`. examine: returns the error to raise for a failed run, which says whose fault it is.

    watch: follows each run; settling: seconds of pause before one; before_run: called before each, outside of
    what is timed.
    """

    session: Session
    examine: Callable[[PerfbisectError, bool], PerfbisectError]
    watch: RunWatch
    settling: float = 0.0
    before_run: Callable[[], None] = lambda: None
    facts: BootFacts = field(init=False)
    _broken: PerfbisectError | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.facts = self.session.facts

    def run(self, index: int) -> RunResult:
        """Execute the workload once. See `ports.Session.run`."""
        with self._examined(usual=True):
            return self.session.run(index)

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        """Make the runs of a monitor. See `ports.Session.run_monitor`."""
        with self._examined(usual=False):  # several runs, each slower
            return self.session.run_monitor(monitor)

    def leave(self) -> None:
        """End the boot. The machine runs on."""
        self.session.leave()

    @contextmanager
    def _examined(self, *, usual: bool) -> Iterator[None]:
        if self._broken is not None:
            raise self._broken
        self.before_run()
        self.watch.run_begins(self.settling)
        went_well = False
        try:
            yield
            went_well = True
        except (BootFailed, TestbedLost, WorkloadFailed) as error:
            found = self.examine(error, isinstance(error.__cause__, LineClosed))
            if found is error and isinstance(error, WorkloadFailed):
                raise  # the boot may go on
            self._broken = found
            raise found from error
        finally:
            self.watch.run_ended(usual=usual and went_well)
