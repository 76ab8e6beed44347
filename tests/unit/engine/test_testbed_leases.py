"""What a worker has leased of the testbeds, and what it asks the database for."""

from __future__ import annotations

import time

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.engine import testbed_leases
from bisector.engine.membership import Membership
from bisector.engine.testbed_leases import TestbedLeases


class Two:
    """Two executors; told: what was told to those that wait for a testbed of the second."""

    def __init__(self) -> None:
        self.coordinator = MemoryCoordinator(time.time)
        self.told: list[tuple[str, str]] = []
        self.first, self.second = (self.join(name) for name in ("first", "second"))

    def join(self, name: str) -> TestbedLeases:
        self.coordinator.register(f"{name}-1", name)
        membership = Membership(self.coordinator, f"{name}-1", name)
        return TestbedLeases(membership, lambda testbed, text: self.told.append((testbed, text)))


def test_a_testbed_is_had_by_one_and_told_to_be_wanted_until_it_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(testbed_leases, "_ASK_SECONDS", -1.0)
    two = Two()
    assert two.first.acquire("a")
    assert not two.second.acquire("a")
    assert not two.first.is_wanted("a"), "nobody has looked yet"
    assert two.first.poll()
    assert two.first.is_wanted("a") and not two.first.is_wanted("b")
    lease = two.first.get("a")
    assert lease is not None and lease.resource == "testbed a"
    two.first.release("a")
    two.first.poll()
    assert not two.first.is_wanted("a") and two.first.get("a") is None
    assert not two.first.acquire("a"), "the other one has waited before"
    assert two.second.acquire("a")


def test_the_database_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two()
    assert two.first.acquire("a")
    assert [two.second.poll(), two.second.poll()] == [True, False]
    assert not two.second.acquire("a")
    two.first.release("a")
    assert not two.second.acquire("a"), "it was asked just now"
    monkeypatch.setattr(testbed_leases, "_ASK_SECONDS", -1.0)
    assert two.second.acquire("a")


def test_a_long_wait_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbed_leases, "_ASK_SECONDS", -1.0)
    two = Two()
    two.first.acquire("a")
    two.second.acquire("a")
    assert two.told == [], "a hand-over takes a second or two"
    monkeypatch.setattr(testbed_leases, "_SILENT_SECONDS", -1.0)
    two.second.acquire("a")
    two.second.acquire("a")
    text = "waiting for the testbed 'a', which 'first' (last heard of 0 s ago) uses"
    assert two.told == [("a", text)]


class Time:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_wait_is_as_long_as_it_lasts_and_the_next_one_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Time()
    monkeypatch.setattr(testbed_leases, "time", clock)
    two = Two()

    def wait(seconds: int) -> int:
        """Ask for so many seconds; return how often somebody was told of it."""
        before = len(two.told)
        for _ in range(seconds):
            clock.now += 1.1
            assert not two.second.acquire("a")
        return len(two.told) - before

    two.first.acquire("a")
    assert (wait(4), wait(10)) == (0, 1)
    two.first.release("a")
    clock.now += 1.1
    assert two.second.acquire("a")
    two.second.release("a")
    two.first.acquire("a")
    assert (wait(4), wait(10)) == (0, 1), "who has had it waits anew"


def test_without_a_database_server_every_testbed_is_ours() -> None:
    leases = TestbedLeases(None, lambda testbed, text: None)
    assert leases.acquire("a")
    assert not leases.poll() and not leases.is_wanted("a") and leases.get("a") is None
    leases.release("a")
