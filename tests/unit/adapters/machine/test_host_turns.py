"""Turns on a host: alone for what the wall clock times, together for all else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.machine.host_turns import TestbedOnHost
from bisector.adapters.system.machine_locks import MachineLock
from bisector.errors import Interrupted
from bisector.model.goal import TestbedClock
from bisector.ports import BuildOrder, Monitor, Session
from bisector.simulation.noise_model import LabModel
from bisector.testing.fake_testbed import FakeTestbed, job
from bisector.testing.fakes import FakeBuilder
from tests.support import fake_bisection as fake


class Bench:
    """One fake testbed in turn on the host 'one', and a compile there that the test holds."""

    def __init__(self, folder: Path, clock: TestbedClock = "wall") -> None:
        self.folder, self.stop = folder, threading.Event()
        lab = fake.a_lab(model=LabModel(run_noise=0.2, clock=clock))
        self.kernel = FakeBuilder(lab, folder / "kernels").build(BuildOrder(lab.graph.shas[3], "fake"), print)
        self.testbed = TestbedOnHost(FakeTestbed("bed", lab), self.turn("one"))

    def turn(self, host: str) -> MachineLock:
        return MachineLock(self.folder / "locks", (host,), "its turn", "the test", self.stop.is_set)

    def boot(self) -> Session:
        return self.testbed.boot(self.kernel, job(self.folder), self.folder, print)


def blocked(action: Callable[[], object]) -> Callable[[], None]:
    """Start an action that must wait; return what lets the test wait for its end."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()

    def end() -> None:
        thread.join(20)
        assert not thread.is_alive()

    return end


def test_name_and_clock_are_those_of_the_testbed(tmp_path: Path) -> None:
    testbed = Bench(tmp_path).testbed
    assert (testbed.name, testbed.clock) == ("bed", "wall")


@pytest.mark.parametrize("action", ["run", "monitor"])
def test_what_the_wall_clock_times_waits_for_a_compile_on_its_host_and_no_other(
    tmp_path: Path, action: str
) -> None:
    bench = Bench(tmp_path)
    session = bench.boot()

    def work() -> object:
        return session.run(0) if action == "run" else session.run_monitor(Monitor("proc", ()))

    with bench.turn("two").shared(print):
        work()
    with bench.turn("one").shared(print):
        end = blocked(work)
    end()
    session.leave()


def test_a_compile_and_a_boot_wait_for_what_the_wall_clock_times(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    booted: list[Session] = []
    with bench.turn("one").exclusive(print):
        end = blocked(lambda: booted.append(bench.boot()))
    end()
    assert booted[0].facts.waited_seconds >= 0.2
    booted[0].leave()


def test_on_the_instruction_clock_nobody_waits_but_for_the_wall_clock(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "instructions")
    with bench.turn("one").shared(print):
        session = bench.boot()
        session.run(0)
    with bench.turn("one").exclusive(print):
        end = blocked(lambda: session.run(1))
    end()
    session.leave()


def test_a_wait_ends_when_told_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    session = bench.boot()
    said: list[BaseException] = []

    def run() -> None:
        try:
            session.run(0)
        except Interrupted as error:
            said.append(error)

    with bench.turn("one").shared(print):
        end = blocked(run)
        bench.stop.set()
        end()
    assert "its turn" in str(said[0])
