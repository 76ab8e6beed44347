"""A mark is renewed while its machine is used, and by nobody else's leave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

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


def test_a_machine_that_was_taken_over_is_not_ours_once_our_mark_has_ended(bench: Bench) -> None:
    """It would be switched off, while another perfbisect measures."""
    bench.keeper.take(50.0)
    bench.mark.ours, bench.now = False, 900.0
    assert not bench.keeper.renew()
    bench.now = 1000.0
    assert not bench.keeper.holds()


def test_nobody_asks_for_a_machine_that_was_taken_over_again_and_again(bench: Bench) -> None:
    bench.keeper.take(50.0)
    bench.mark.ours, bench.now = False, 400.0
    bench.keeper.boot_ended()
    thread = bench.keeper._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    assert bench.mark.renewed == 1


def test_one_at_a_time_renews_the_mark_and_who_asks_waits_for_its_answer(bench: Bench) -> None:
    """Two logins at once disturb a run twice; an answer of before would say that the mark has ended."""
    bench.keeper.take(50.0)
    asked = [threading.Thread(target=ask) for ask in (bench.keeper.holds, bench.keeper.before_run)]
    with bench.keeper._lock:  # as a renewal that is under way
        bench.now = 400.0
        bench.keeper.boot_ended()
        for thread in asked:
            thread.start()
            thread.join(0.2)
            assert thread.is_alive()
        assert bench.mark.renewed == 0
    until(lambda: bench.mark.renewed == 1, 10)
    for thread in asked:
        thread.join(10)
    assert bench.mark.renewed == 1


def test_a_mark_that_was_renewed_holds_from_then_on(bench: Bench) -> None:
    bench.keeper.take(50.0)
    bench.now = 900.0
    assert bench.keeper.renew()
    bench.now = 1800.0
    assert bench.keeper.holds()


def test_who_waits_to_renew_a_mark_that_ends_meanwhile_does_not(bench: Bench) -> None:
    """The machine is another's at once, and its run would be disturbed by a login."""
    bench.keeper.take(50.0)
    thread = bench.keeper._thread
    assert thread is not None
    with bench.keeper._lock:
        bench.now = 400.0
        bench.keeper.boot_ended()
        thread.join(0.1)
        bench.keeper._ended.set()  # as `end` begins
    thread.join(10)
    assert not thread.is_alive()
    assert bench.mark.renewed == 0


def test_over_a_slow_line_a_mark_holds_from_when_it_was_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may have set it at once, and the answer have been late: then it ends before we think."""

    def slow(answer: bool) -> Callable[[float], bool]:
        def call(seconds: float) -> bool:
            bench.now += 100.0
            return answer

        return call

    monkeypatch.setattr(bench.mark, "set", slow(False))
    monkeypatch.setattr(bench.mark, "renew", slow(True))
    bench.keeper.take(50.0)
    bench.now = 951.0
    assert not bench.keeper.holds()
    for renew in (bench.keeper.renew, bench.keeper.before_run):
        began = bench.now
        renew()
        bench.now = began + 951.0
        assert not bench.keeper.holds()


def test_a_mark_lasts_through_three_boots_of_an_hour() -> None:
    """While a boot is under way nobody renews it: another host would take the machine over."""
    mark = Mark()
    keeper = MarkKeeper(mark, 3600.0, lambda: False, lambda: 0.0)  # type: ignore[arg-type]
    keeper.take(run_seconds=60.0)
    keeper.end()
    assert mark.set_for == [3 * 3600.0 + 600 + 60]
