"""When a machine is asked whether it still answers in a run, and when it counts as hung."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.adapters.machine import run_watch
from bisector.adapters.machine.machine_reach import Answer
from bisector.adapters.machine.run_watch import RunWatch
from bisector.adapters.system.ssh import LoginRefused, SSHRefused, UnverifiedHost
from bisector.errors import InfrastructureError


class Machine:
    """Answers or not; counts how often it is asked."""

    def __init__(self) -> None:
        self.answers, self.asked = True, 0

    def ask(self) -> Answer:
        self.asked += 1
        if not self.answers:
            raise SSHRefused("no answer from box")
        return Answer("boot-1", "key")


class Clock:
    """`awake_seconds` of a test."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(run_watch, "awake_seconds", clock)
    return clock


def watched(machine: Any) -> RunWatch:
    return RunWatch(machine)


def ran(watch: RunWatch, clock: Clock, seconds: float) -> None:
    watch.run_begins()
    clock.now += seconds
    watch.run_ended(usual=True)


def asked_at(watch: RunWatch, machine: Machine, clock: Clock, until: int) -> list[int]:
    """Return after which seconds of a run the machine is asked."""
    watch.run_begins()
    began, seconds = clock.now, []
    for second in range(until):
        clock.now = began + second
        before = machine.asked
        assert watch.death() is None
        if machine.asked > before:
            seconds.append(second)
    return seconds


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        ([], [600, 1200, 2400]),
        ([2.0], [60, 120, 240, 480, 960, 1920]),
        ([2.0, 40.0, 3.0], [400, 800, 1600]),
    ],
    ids=["a first run", "a short one before", "the longest counts"],
)
def test_it_asks_late_and_ever_more_seldom(clock: Clock, before: list[float], asked: list[int]) -> None:
    machine = Machine()
    watch = watched(machine)
    for seconds in before:
        ran(watch, clock, seconds)
    assert asked_at(watch, machine, clock, 3000) == asked


def hung(machine: Machine, clock: Clock) -> RunWatch:
    """Return a watch over a run in which the machine has been silent twice; it is time to ask again."""
    watch = watched(machine)
    ran(watch, clock, 1.0)
    watch.run_begins()
    machine.answers = False
    clock.now += 60
    for _ in range(2):
        assert watch.death() is None
        clock.now += 20
    return watch


def test_three_silences_in_a_row_are_a_death(clock: Clock) -> None:
    machine = Machine()
    watch = watched(machine)
    ran(watch, clock, 1.0)
    watch.run_begins()
    machine.answers = False
    clock.now += 60
    assert watch.death() is None
    clock.now += 19
    assert watch.death() is None
    assert machine.asked == 1, "some seconds later, not at once"
    clock.now += 1
    assert watch.death() is None
    clock.now += 20
    assert watch.death() == "100 s after the run began nobody answers: no answer from box"


def test_an_answer_between_begins_the_count_anew(clock: Clock) -> None:
    machine = Machine()
    watch = hung(machine, clock)
    machine.answers = True
    assert watch.death() is None
    clock.now += 1020
    machine.answers = False
    for _ in range(2):
        assert watch.death() is None
        clock.now += 20
    assert machine.asked == 5
    assert watch.death() is not None


def test_a_run_that_hung_says_nothing_of_the_next_boot(clock: Clock) -> None:
    machine = Machine()
    watch = hung(machine, clock)
    assert watch.death() is not None
    watch.run_ended(usual=False)
    clock.now += 500
    asked = machine.asked
    assert watch.death() is None
    assert machine.asked == asked, "it boots again, and nobody runs there"
    machine.answers = True
    assert asked_at(watch, machine, clock, 130) == [60, 120], "nor was it as long as a run"


@pytest.mark.parametrize("error", [LoginRefused("no key"), UnverifiedHost("another key")])
def test_who_lets_nobody_in_answers(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, error: InfrastructureError
) -> None:
    def refuse() -> Answer:
        raise error

    machine = Machine()
    watch = watched(machine)
    ran(watch, clock, 1.0)
    monkeypatch.setattr(machine, "ask", refuse)
    watch.run_begins()
    for _ in range(10):
        clock.now += 60
        assert watch.death() is None


def test_nobody_is_asked_outside_of_runs(clock: Clock) -> None:
    machine = Machine()
    watch = watched(machine)
    clock.now += 5000
    assert watch.death() is None
    ran(watch, clock, 1.0)
    clock.now += 5000
    assert watch.death() is None
    assert machine.asked == 0


def test_the_pause_before_a_run_is_no_part_of_it(clock: Clock) -> None:
    machine = Machine()
    watch = watched(machine)
    ran(watch, clock, 1.0)
    watch.run_begins(settling=300.0)
    clock.now += 300
    assert watch.death() is None
    assert machine.asked == 0
    clock.now += 60
    assert watch.death() is None
    assert machine.asked == 1


def test_a_run_with_a_pause_is_as_long_as_without(clock: Clock) -> None:
    machine = Machine()
    watch = watched(machine)
    watch.run_begins(settling=30.0)
    clock.now += 38
    watch.run_ended(usual=True)
    assert asked_at(watch, machine, clock, 100) == [80]


def test_silences_of_the_run_before_do_not_count(clock: Clock) -> None:
    """A machine that was slow to answer twice in one run, and once in the next, is not hung."""
    watch = hung(Machine(), clock)
    watch.run_ended(usual=False)
    watch.run_begins()
    clock.now += 60
    assert watch.death() is None
