"""The time of testbeds is counted for each owner, written, and compared with the caps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.engine.shares.hour_counter import HourCounter
from bisector.model.machine_hours import HOUR_SECONDS, WEEK_HOURS


class Clock:
    """Both clocks: of the process and of the database."""

    now = 1.8e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("bisector.engine.shares.hour_counter.time", SimpleNamespace(monotonic=clock))
    return clock


def test_each_testbed_counts_and_what_others_wrote_too(clock: Clock) -> None:
    coordinator = MemoryCoordinator(clock)
    coordinator.add_machine_time("nightly", 0.5 * HOUR_SECONDS)
    hours = HourCounter(coordinator, lambda: {"nightly": 1.0})
    hours.count([])
    assert hours.why_not("nightly") is None
    clock.now += 11 * 60
    hours.count(["nightly", "nightly", "ada@lab"])
    clock.now += 15 * 60
    hours.count(["nightly", "ada@lab"])
    assert sum(coordinator.machine_time("nightly").values()) == pytest.approx(67 * 60)
    assert sum(coordinator.machine_time("ada@lab").values()) == pytest.approx(26 * 60)
    why = hours.why_not("nightly")
    assert why is not None
    assert why.startswith("waits until 2027-01-22 08:00 UTC: nightly has had its machine hours")
    assert hours.why_not("ada@lab") is None, "it has no cap"
    clock.now += WEEK_HOURS * HOUR_SECONDS
    hours.count([])
    assert hours.why_not("nightly") is None


def test_what_is_left_to_write_counts_at_once_and_is_written_once(clock: Clock) -> None:
    coordinator = MemoryCoordinator(clock)
    hours = HourCounter(coordinator, lambda: {"nightly": 10 / HOUR_SECONDS})
    hours.count([])
    clock.now += 10.5
    hours.count(["nightly"])
    assert (hours.why_not("nightly") is not None, coordinator.machine_time("nightly")) == (True, {})
    hours.write()
    hours.write()
    assert list(coordinator.machine_time("nightly").values()) == [10.5]


def test_a_visit_asks_while_the_count_is_renewed(clock: Clock) -> None:
    coordinator = MemoryCoordinator(clock)
    coordinator.add_machine_time("ada", HOUR_SECONDS)
    hours = HourCounter(coordinator, lambda: {"ada": 0.5})
    hours.count([])

    class Name(str):
        """An owner's name after whose first lookup another thread finds that all may go on."""

        __slots__ = ()

        def __hash__(self) -> int:
            return hash(str(self))

        def __eq__(self, other: object) -> bool:
            hours._until = {}
            return str(self) == other

    assert hours._until.keys() == {"ada"}
    assert (hours.why_not(Name("ada")) or "").startswith("waits until")
    assert hours.why_not(Name("ada")) is None
