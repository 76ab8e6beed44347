"""Which testbeds must not be used, and why, in words that people read."""

from __future__ import annotations

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.engine import availability
from bisector.engine.availability import Availability, why_not


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
        "a": "reserved by ann",
        "b": "maintenance: new memory (bob)",
        "d": "suspect: no reason given (a health check)",
    }
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
