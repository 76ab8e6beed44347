"""Which testbeds must not be used, and why, in words that people read; checks keep a sick one away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.app import bisections
from bisector.engine import availability, executor
from bisector.engine.availability import Availability, NoChecks, why_not
from bisector.engine.events import Event
from bisector.engine.others import Others
from bisector.engine.shares.hour_counter import HourCounter
from bisector.model.records import Booted
from bisector.ports import Progress
from bisector.testing.fakes import Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_reservations_hold_while_they_last_and_states_until_they_change() -> None:
    clock = Clock()
    coordinator = MemoryCoordinator(clock)
    coordinator.reserve("a", "ann", end=1100.0)
    coordinator.reserve("later", "ann", end=3000.0, start=2000.0)
    coordinator.set_testbed("b", "maintenance", "new memory", "bob")
    coordinator.set_testbed("c", "good", "", "bob")
    coordinator.set_testbed("d", "suspect", "", "a health check")
    assert why_not(coordinator) == {
        "a": "reserved by ann until 1970-01-01 00:18 UTC",
        "b": "maintenance: new memory (bob)",
        "d": "suspect: no reason given (a health check)",
    }
    assert set(why_not(coordinator, "ann", ("suspect",))) == {"b"}, "one's own reservation is a permission"
    assert Availability(coordinator, "ann").why_not("a") is None
    assert Availability(coordinator, "bob").why_not("a") is not None
    clock.now = 1100.0
    coordinator.set_testbed("b", "good", "", "bob")
    assert set(why_not(coordinator)) == {"d"}
    coordinator.set_testbed("later", "retired", "sold", "bob")
    clock.now = 2500.0
    assert why_not(coordinator)["later"] == "retired: sold (bob)", "the state is told before the reservation"


def test_the_database_is_not_asked_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = MemoryCoordinator(Clock())
    available = Availability(coordinator)
    assert available.why_not("a") is None
    coordinator.set_testbed("a", "maintenance", "", "bob")
    assert available.why_not("a") is None
    monkeypatch.setattr(availability, "_ASK_SECONDS", 0.0)
    assert available.why_not("a") is not None


class Checks(NoChecks):
    """Checks that fail for 'b', whose result everybody is told then; 'b' returns at its second check."""

    def __init__(self, *, returns: bool) -> None:
        self.made: list[str] = []
        self.uses: list[str] = []
        self.returns = returns
        self.sick = False

    def passes(self, testbed: str, bisection: str, note: Progress, stop: Callable[[], bool]) -> bool:
        self.made.append(testbed)
        self.sick = testbed == "b" and not (self.returns and self.made.count("b") > 1)
        return not (testbed == "b" and self.sick)

    def is_due(self, testbed: str) -> bool:
        return testbed == "a" and self.made.count("a") < 2  # leave it once

    def is_recheck_due(self, testbed: str) -> bool:
        return self.returns and self.sick and testbed == "b"

    def used(self, testbed: str) -> None:
        self.uses.append(testbed)

    def why_not(self, testbed: str) -> str | None:
        return "suspect: +12% (a health check)" if testbed == "b" and self.sick else None


def run(folder: Path, checks: Checks) -> tuple[set[str], list[str]]:
    """Return the testbeds that booted a kernel, and what was told beside the search."""
    lab, store = fake.a_lab(), MemoryStore()
    services = fake.services(lab, folder, store=store, testbeds=("a", "b"), pace=Pace(boot=0.02, run=0.01))
    services = replace(services, why_not=checks.why_not)
    stored = fake.begin(store, lab, ("a", "b"))
    told: list[str] = []

    def tell(event: Event) -> None:
        if event.kind in ("note", "trouble"):
            told.append(event.text)

    others = Others(lambda _: (), lambda *_: services, lambda *_: None, lambda _: None, checks)
    conclusion = bisections.run(stored, services, tell, threading.Event(), others)
    assert conclusion.findings[0].commits == (fake.CULPRIT,)
    return {r.testbed for _, r in store.records(stored.id) if isinstance(r, Booted)}, told


def test_a_testbed_that_fails_its_check_is_not_used_and_the_search_goes_on(tmp_path: Path) -> None:
    checks = Checks(returns=False)
    used, told = run(tmp_path, checks)
    assert used == {"a"}
    assert "the testbed 'b' is not used: suspect: +12% (a health check)" in told
    assert set(checks.uses) == {"a"}
    assert checks.made.count("a") >= 2, "it was left for a check, and taken again"


def test_a_testbed_that_passes_a_later_check_is_used_again(tmp_path: Path) -> None:
    used, _ = run(tmp_path, Checks(returns=True))
    assert used == {"a", "b"}


class SlowCheck(NoChecks, HourCounter):
    """A check that goes on until the time of testbeds was counted ten times, and that counting."""

    def __init__(self) -> None:
        super().__init__(MemoryCoordinator(Clock()), dict)
        self.counted: dict[bool, list[str]] = {True: [], False: []}  # whether we check -> owners
        self.looks = 0
        self.is_checking = True

    def passes(self, testbed: str, bisection: str, note: Progress, stop: Callable[[], bool]) -> bool:
        until(lambda: self.looks > 10, 60.0)
        self.is_checking = False
        return True

    def count(self, owners: Iterable[str]) -> None:
        now = list(owners)
        self.counted[self.is_checking] += now  # only when it is over a visit can begin
        self.looks += 1

    def write(self) -> None:
        pass


def test_a_check_counts_for_no_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_POLL_SECONDS", 0.01)
    lab, store, check = fake.a_lab(), MemoryStore(), SlowCheck()
    pace = Pace(boot=0.05, run=0.001)
    services = replace(fake.services(lab, tmp_path, store=store, testbeds=("a",), pace=pace), hours=check)
    others = Others(lambda _: (), lambda *_: services, lambda *_: None, lambda _: None, check)
    bisections.run(fake.begin(store, lab, ("a",)), services, lambda _: None, threading.Event(), others)
    assert check.looks > 10
    assert check.counted[True] == [] and check.counted[False] != []
