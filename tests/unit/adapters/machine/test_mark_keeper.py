"""A mark is renewed while its machine is used, and by nobody else's leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bisector.adapters.machine.machine_mark import MOST_SECONDS, MachineMark
from bisector.adapters.machine.mark_keeper import MarkKeeper
from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import MachineInUse
from tests.support.waiting import until


class Mark:
    """A mark in no machine; how long it was set for, each time."""

    name = "box1"

    def __init__(self) -> None:
        self.set_for: list[float] = []
        self.renewed = 0
        self.answers, self.ours = True, True

    def set(self, seconds: float) -> bool:
        self.set_for.append(seconds)
        return False

    def renew(self, seconds: float) -> bool:
        if not self.answers:
            raise SSHRefused("no route")
        self.renewed += 1
        return self.ours


class Bench:
    def __init__(self) -> None:
        self.mark, self.now, self.stop = Mark(), 0.0, False
        mark: MachineMark = self.mark  # type: ignore[assignment]
        self.keeper = MarkKeeper(mark, 100.0, lambda: self.stop, lambda: self.now, look_seconds=0.01)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.keeper.end()


def test_it_is_due_before_it_ends_however_long_a_run_takes(bench: Bench) -> None:
    bench.keeper.take(run_seconds=50_000.0)
    bench.now = MOST_SECONDS - 1.0
    assert bench.keeper.holds()
    bench.keeper.before_run()
    assert bench.mark.renewed == 1
    bench.now += MOST_SECONDS
    assert not bench.keeper.holds(), "on the machine, no mark holds longer"


def test_it_is_renewed_between_boots_for_as_long_as_a_build_takes(bench: Bench) -> None:
    bench.keeper.take(run_seconds=50.0)
    assert bench.mark.set_for == [950.0], "three boots, ten minutes, and a run"
    bench.now = 400.0
    bench.keeper.boot_ended()
    until(lambda: bench.mark.renewed == 1, 10)
    bench.now = 800.0
    until(lambda: bench.mark.renewed == 2, 10)
    assert bench.keeper.holds()


def test_nothing_connects_while_a_boot_is_under_way(bench: Bench) -> None:
    bench.keeper.take(50.0)
    thread = bench.keeper._thread
    assert thread is not None
    assert thread.daemon, "a process that ends does not wait for it"
    bench.now = 400.0
    thread.join(0.2)
    assert thread.is_alive()
    assert bench.mark.renewed == 0
    bench.keeper.before_run()
    assert bench.mark.renewed == 1, "but before a run"
    bench.keeper.before_run()
    assert bench.mark.renewed == 1, "and only when it is due"


def test_who_was_taken_over_measures_no_more(bench: Bench) -> None:
    bench.keeper.take(50.0)
    bench.mark.ours = False
    bench.keeper.before_run()
    bench.now = 400.0
    with pytest.raises(MachineInUse, match="'box1' was taken over by another perfbisect"):
        bench.keeper.before_run()
    assert not bench.keeper.renew()


def test_a_machine_out_of_reach_is_ours_for_as_long_as_the_mark_holds(bench: Bench) -> None:
    assert not bench.keeper.holds()
    bench.keeper.take(50.0)
    bench.mark.answers = False
    bench.now = 949.0
    bench.keeper.before_run()
    assert bench.keeper.holds()
    bench.now = 951.0
    assert not bench.keeper.holds()


@pytest.mark.parametrize("end", ["end", "stop"])
def test_nothing_is_renewed_once_it_has_ended(bench: Bench, end: str) -> None:
    bench.keeper.take(50.0)
    bench.keeper.boot_ended()
    thread = bench.keeper._thread
    assert thread is not None
    if end == "end":
        bench.keeper.end()
        assert bench.keeper._thread is None, "whoever takes the machine at once has a thread of its own"
    else:
        bench.stop = True
    thread.join(10)
    assert not thread.is_alive()
    bench.now, bench.stop = 400.0, False
    assert bench.mark.renewed == 0
    bench.keeper.take(50.0)
    bench.keeper.boot_ended()
    bench.now = 800.0
    until(lambda: bench.mark.renewed == 1, 10)
