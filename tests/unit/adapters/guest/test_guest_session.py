"""A guest's session: suspended between runs, destroyed once; who is blamed for a boot that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.guest.guest_session import GuestSession, destroying_on_failure
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError, TestbedLost, WorkloadFailed
from bisector.model.facts import MonitorResult
from bisector.ports import BootFacts, MetricSpec, Monitor, RunResult


class World:
    """An inner session and a domain, which write down what is done with them."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.facts = BootFacts("6.1", "")
        self.fails: dict[str, Exception] = {}
        self.loss: PerfbisectError | None = None
        self.runs = 0

    def _do(self, what: str) -> None:
        self.did.append(what)
        if what in self.fails:
            raise self.fails[what]

    def run(self, index: int) -> RunResult:
        self.runs += 1
        self._do("run")
        return RunResult({"real": float(index)}, 1.0, 1.0, Path("raw"), number=self.runs)

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        self.runs += 1
        self._do("monitor")
        return MonitorResult(monitor.name)

    def leave(self) -> None:
        self._do("leave")

    def suspend(self) -> None:
        self._do("suspend")

    def resume(self) -> None:
        self._do("resume")

    def destroy(self) -> None:
        self._do("destroy")

    def lost(self) -> PerfbisectError | None:
        return self.loss


def session(world: World, *, suspend: bool = True, **counting: Any) -> GuestSession:
    held = contextlib.ExitStack()
    held.callback(world.did.append, "released")
    one: Any = world
    return GuestSession(world.facts, one, one, suspend, held, **counting)


class Counts:
    """Has counted 1, 2, ... instructions in run 1, 2, ..."""

    def take(self, number: int, cmdline: str) -> dict[str, float]:
        return {"instructions": float(number)}


def test_what_was_counted_belongs_to_the_run_in_which_it_was() -> None:
    world = World()
    one = session(world, counted=Counts())
    assert one.run(1).values == {"real": 1.0, "instructions": 1.0}
    world.fails["run"] = WorkloadFailed("no metric")
    with pytest.raises(WorkloadFailed):
        one.run(2)
    world.fails.clear()
    assert one.run(3).values == {"real": 3.0, "instructions": 3.0}
    one.run_monitor(Monitor("proc", ()))
    assert one.run(5).values["instructions"] == 5.0


def test_a_ratio_of_counts_is_computed_where_they_are() -> None:
    specs = (MetricSpec("real", "s"), MetricSpec("ipr", "", optional=True, ratio=("instructions", "real")))
    one = session(World(), counted=Counts(), metrics=specs)
    assert one.run(2).values == {"real": 2.0, "instructions": 1.0, "ipr": 0.5}
    assert session(World(), metrics=specs).run(2).values == {"real": 2.0}


class Lost:
    """Counted nothing."""

    def take(self, number: int, cmdline: str) -> dict[str, float]:
        raise TestbedLost(f"the emulator counted nothing in run {number}")


def test_a_run_that_was_not_counted_is_lost_only_where_a_count_decides() -> None:
    with pytest.raises(TestbedLost, match="in run 1"):
        session(World(), counted=Lost(), needed=True).run(1)
    world = World()
    one = session(world, counted=Lost())
    assert [one.run(number).values for number in (1, 2)] == [{"real": 1.0}, {"real": 2.0}]
    assert one.run_monitor(Monitor("counters", ())).absent == ("the emulator counted nothing in run 1",)


class Inlined:
    """Counts a function that this kernel does not have."""

    def take(self, number: int, cmdline: str) -> dict[str, float]:
        raise WorkloadFailed("'instructions.foo' cannot be counted: this kernel has no function 'foo'")


@pytest.mark.parametrize("needed", [True, False])
def test_a_kernel_without_what_is_counted_fails_its_run(needed: bool) -> None:
    with pytest.raises(WorkloadFailed, match="no function 'foo'"):
        session(World(), counted=Inlined(), needed=needed).run(1)


class Profiled(Counts):
    """Needs to know the modules."""

    def profile(self, cmdline: str, module_symbols: Callable[[], str]) -> MonitorResult:
        return MonitorResult("counters", module_symbols())


def test_a_guest_is_resumed_to_say_where_its_modules_are() -> None:
    world = World()
    one = session(world, counted=Profiled(), module_symbols=lambda: str(world.did[-1]))
    one.run(0)
    assert one.run_monitor(Monitor("counters", ())).folder == "resume"
    assert world.did == ["run", "suspend", "resume", "suspend"]


def test_where_nothing_counts_the_monitor_says_why_and_the_agent_is_not_asked() -> None:
    world = World()
    one = session(world, uncounted="this QEMU has no plugins")
    assert one.run_monitor(Monitor("counters", ())) == MonitorResult(
        "counters", absent=("this QEMU has no plugins",)
    )
    assert world.did == []
    assert session(world).run_monitor(Monitor("counters", ())).absent == ("nothing was counted",)


def test_the_guest_runs_only_while_something_is_measured() -> None:
    world = World()
    one = session(world)
    assert one.run(3).values == {"real": 3.0}
    assert one.run_monitor(Monitor("proc", ())).monitor == "proc"
    one.leave()
    one.leave()
    expected = "run suspend resume monitor suspend leave destroy released"
    assert " ".join(world.did) == expected


def test_a_guest_whose_run_failed_is_not_resumed_once_more() -> None:
    """Libvirt refuses that, and the guest would count as lost."""
    world = World()
    one = session(world)
    one.run(0)
    world.fails["run"] = WorkloadFailed("code 1")
    with pytest.raises(WorkloadFailed):
        one.run(1)
    world.fails.clear()
    one.run(2)
    assert world.did == ["run", "suspend", "resume", "run", "run", "suspend"]


def test_a_guest_on_a_wall_clock_is_never_suspended() -> None:
    world = World()
    one = session(world, suspend=False)
    one.run(0)
    one.run(1)
    assert world.did == ["run", "run"]


def test_a_guest_that_cannot_be_suspended_goes_on_and_one_that_cannot_be_resumed_is_lost() -> None:
    world = World()
    one = session(world)
    world.fails["suspend"] = InfrastructureError("no libvirt")
    one.run(0)
    one.run(1)
    assert "resume" not in world.did
    del world.fails["suspend"]
    one.run(2)
    world.fails["resume"] = InfrastructureError("no libvirt", details="gone")
    with pytest.raises(TestbedLost, match="cannot be resumed"):
        one.run(3)


def test_after_leaving_there_is_no_guest() -> None:
    one = session(World())
    one.leave()
    with pytest.raises(TestbedLost):
        one.run(0)
    with pytest.raises(TestbedLost):
        one.run_monitor(Monitor("proc", ()))


@pytest.mark.parametrize(
    ("error", "loss", "raised"),
    [
        (InfrastructureError("SSH broke"), None, InfrastructureError),
        (InfrastructureError("SSH broke"), TestbedLost("its QEMU was killed"), TestbedLost),
        (InfrastructureError("SSH broke"), BootFailed("reset without a word"), BootFailed),
        (BootFailed("panic"), TestbedLost("its QEMU died"), BootFailed),  # it died first
        (WorkloadFailed("code 1"), TestbedLost("its QEMU died"), WorkloadFailed),
        (KeyboardInterrupt(), TestbedLost("its QEMU died"), KeyboardInterrupt),
    ],
)
def test_who_is_blamed_for_a_boot_that_fails(
    error: BaseException, loss: PerfbisectError | None, raised: type[BaseException]
) -> None:
    world: Any = World()
    world.loss = loss
    with pytest.raises(raised) as caught, destroying_on_failure(world, world):
        raise error
    assert caught.value is (loss if isinstance(error, InfrastructureError) and loss is not None else error)
    assert world.did == ["destroy"]


def test_a_loss_that_is_known_is_not_looked_for_again() -> None:
    world: Any = World()
    world.loss = TestbedLost("later")
    first = TestbedLost("first")
    with pytest.raises(TestbedLost) as caught, destroying_on_failure(world, world):
        raise first
    assert caught.value is first


def test_a_boot_that_goes_well_keeps_its_guest() -> None:
    world: Any = World()
    with destroying_on_failure(world, world):
        pass
    assert world.did == []
