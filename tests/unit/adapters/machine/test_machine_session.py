"""A failure of a live boot is examined once; what the workload itself did stays its own."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.adapters.machine.machine_session import MachineSession
from bisector.adapters.system.channel import LineClosed
from bisector.errors import (
    BootFailed,
    InfrastructureError,
    MachineInUse,
    PerfbisectError,
    TestbedLost,
    WorkloadFailed,
)
from bisector.ports import BootFacts, Monitor, RunResult


class Broken:
    """ports.Session whose every run fails."""

    facts = BootFacts("6.1", "")

    def __init__(self, error: PerfbisectError, cause: Exception | None = None) -> None:
        self.error, self.cause, self.left = error, cause, 0

    def run(self, index: int) -> RunResult:
        raise self.error from self.cause

    def run_monitor(self, monitor: Monitor) -> Any:
        raise self.error from self.cause

    def leave(self) -> None:
        self.left += 1


class Watch:
    """Notes what it is told of runs."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def run_begins(self, settling: float) -> None:
        self.told.append(settling)

    def run_ended(self, *, usual: bool) -> None:
        self.told.append("a run's length" if usual else "ended")


def watch() -> Any:
    return Watch()


@pytest.mark.parametrize("monitor", [False, True])
@pytest.mark.parametrize(
    ("error", "cause", "closed"),
    [
        (TestbedLost("lost"), LineClosed("closed"), True),
        (TestbedLost("garbled"), None, False),
        (BootFailed("the kernel hangs"), None, False),
        (WorkloadFailed("code 1"), None, False),
    ],
)
def test_a_failure_is_examined_once(
    error: PerfbisectError, cause: Exception | None, closed: bool, monitor: bool
) -> None:
    judged, asked = InfrastructureError("judged"), []

    def examine(*given: object) -> PerfbisectError:
        asked.append(given)
        return judged

    session = MachineSession(Broken(error, cause), examine, watch())
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="judged"):
            if monitor:
                session.run_monitor(Monitor("perf", ()))
            else:
                session.run(0)
    assert asked == [(error, closed)]


def test_what_the_workload_did_is_its_own() -> None:
    inner, asked = Broken(WorkloadFailed("code 1")), []

    def examine(*given: object) -> PerfbisectError:
        asked.append(given)
        return inner.error

    session = MachineSession(inner, examine, watch())
    for _ in range(2):
        with pytest.raises(WorkloadFailed) as failed:
            session.run(0)
        assert failed.value is inner.error
    assert asked == [(inner.error, False)] * 2, "it may go on, and be asked for another run"
    session.leave()
    assert inner.left == 1
    assert session.facts is inner.facts


def test_each_run_is_watched_and_only_one_that_went_well_says_how_long_runs_take() -> None:
    class Sound(Broken):
        def run(self, index: int) -> Any:
            return None if index == 0 else super().run(index)

        def run_monitor(self, monitor: Monitor) -> Any:
            return None

    told = watch()
    session = MachineSession(Sound(WorkloadFailed("code 1")), lambda error, _: error, told, 3.0)
    session.run(0)
    with pytest.raises(WorkloadFailed):
        session.run(1)
    session.run_monitor(Monitor("perf", ()))
    assert told.told == [3.0, "a run's length", 3.0, "ended", 3.0, "ended"]


def test_who_was_taken_over_runs_nothing() -> None:
    def taken_over() -> None:
        raise MachineInUse("another host's perfbisect has it")

    def examine(*_: object) -> PerfbisectError:
        raise AssertionError

    session = MachineSession(Broken(BootFailed("it ran")), examine, watch(), before_run=taken_over)
    with pytest.raises(MachineInUse):
        session.run(0)


def test_a_boot_that_broke_off_is_over_though_nobody_could_say_why() -> None:
    """Told to stop, it is not examined: a further run would wait for a line that is gone."""
    lost = TestbedLost("lost")
    broken = Broken(lost)
    session = MachineSession(broken, lambda error, _: error, watch())
    with pytest.raises(TestbedLost):
        session.run(0)
    broken.error = WorkloadFailed("code 1")
    with pytest.raises(TestbedLost):
        session.run(1)
