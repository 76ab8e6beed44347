"""An executor among others: its heartbeat, its leases, and what becomes of those that are silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine import membership
from bisector.engine.membership import Membership, bisection_of, join, requeue_unleased
from bisector.errors import InfrastructureError, RequestError
from bisector.model.leases import HEARTBEAT_TTL_SECONDS
from bisector.model.stored_bisection import Stored
from tests.support import fake_bisection as fake
from tests.support.waiting import until


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def coordinator(clock: Callable[[], float]) -> MemoryCoordinator:
    return MemoryCoordinator(clock)


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """This host's clock, which stands."""
    clock = Clock()
    monkeypatch.setattr("bisector.engine.membership.time", SimpleNamespace(monotonic=clock))
    return clock


def member(coordinator: MemoryCoordinator, name: str) -> Membership:
    coordinator.register(name, name)
    return Membership(coordinator, name, name)


def test_a_testbed_has_one_executor_at_a_time_and_a_bisection_several(
    coordinator: MemoryCoordinator, tmp_path: Path
) -> None:
    with join(coordinator, "one", tmp_path) as one, join(coordinator, "two", tmp_path) as two:
        lease = one.acquire_bisection("b")
        assert lease is not None and bisection_of(lease) == "b"
        assert one.executes_alone("b")
        theirs = two.acquire_bisection("b")
        assert theirs is not None and theirs.resource != lease.resource
        assert not one.executes_alone("b")
        two.release(theirs)
        assert one.executes_alone("b")
        held = one.acquire_testbed("b")
        assert held is not None and bisection_of(held) is None
        assert two.acquire_testbed("b") is None
        assert two.user_of("b") == "'one' (last heard of 0 s ago)"
        assert two.user_of("elsewhere") == "another process"
        assert one.wanted_testbeds() == {"b"}
        one.release(held)
        assert two.acquire_testbed("b") is not None
    assert coordinator.executors() == []
    assert coordinator.leases() == []


def test_a_testbed_of_another_executor_is_used_by_the_one_bisection_that_it_executes(
    coordinator: MemoryCoordinator,
) -> None:
    one, two = member(coordinator, "one"), member(coordinator, "two")
    two.acquire_testbed("t")
    assert not one.uses_of_others(), "it executes nothing"
    two.acquire_bisection("b")
    one.acquire_testbed("u")
    one.acquire_bisection("b")
    assert one.uses_of_others() == {("b", "t")} and two.uses_of_others() == {("b", "u")}
    two.acquire_bisection("c")
    assert not one.uses_of_others(), "nobody knows which of the two has it"


def test_a_living_executor_keeps_its_name_but_for_its_successor_in_the_same_folder(
    coordinator: MemoryCoordinator, tmp_path: Path
) -> None:
    with join(coordinator, "one", tmp_path / "a") as first:
        with pytest.raises(RequestError), join(coordinator, "one", tmp_path / "b"):
            pass
        with join(coordinator, "one", tmp_path / "a"):
            assert first.acquire_testbed("t") is None
            assert first.is_lost
            assert "another process has fenced this one" in first.error().message
    with join(coordinator, "one", tmp_path / "b"):
        pass


def beat_for(members: Sequence[Membership], seconds: int, *clocks: Clock) -> None:
    for _ in range(0, seconds, 5):
        for clock in clocks:
            clock.now += 5
        for one in members:
            one.beat()


def test_who_is_silent_is_fenced_by_the_others_and_knows_it_at_its_next_act(
    coordinator: MemoryCoordinator, clock: Clock, monotonic: Clock
) -> None:
    one, two = member(coordinator, "one"), member(coordinator, "two")
    assert one.acquire_testbed("t") is not None
    beat_for([two], 25, clock, monotonic)
    assert two.acquire_testbed("t") is None, "it may still come back"
    beat_for([two], 5, clock, monotonic)
    assert two.acquire_testbed("t") is not None
    assert not one.is_lost
    assert one.acquire_testbed("u") is None
    assert one.is_lost
    assert not two.is_lost


def test_after_an_outage_nobody_is_fenced_before_all_could_be_heard_of_again(
    coordinator: MemoryCoordinator, clock: Clock, monotonic: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = member(coordinator, "one"), member(coordinator, "two")
    beat_for([one, two], 60, clock, monotonic)
    heartbeat = coordinator.heartbeat

    def away(executor: str) -> None:
        raise InfrastructureError("no connection")

    monkeypatch.setattr(coordinator, "heartbeat", away)
    beat_for([one, two], 300, clock, monotonic)
    monkeypatch.setattr(coordinator, "heartbeat", heartbeat)
    beat_for([one], 25, clock, monotonic)
    assert not any(e.fenced for e in coordinator.executors())
    two.beat()
    beat_for([one, two], 60, clock, monotonic)
    assert not any(e.fenced for e in coordinator.executors())
    beat_for([one], 30, clock, monotonic)
    assert [e.name for e in coordinator.executors() if e.fenced] == ["two"]


def test_a_heartbeat_that_waited_for_the_server_counts_from_the_next_one_on(
    coordinator: MemoryCoordinator, monotonic: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = member(coordinator, "one")
    waits, heartbeat = [15.0, 0.0], coordinator.heartbeat

    def slow(executor: str) -> None:
        monotonic.now += waits.pop(0)
        heartbeat(executor)

    monkeypatch.setattr(coordinator, "heartbeat", slow)
    one.beat()
    assert waits == []
    monotonic.now += 19
    one.check_reach()
    assert not one.is_lost


def test_who_does_not_reach_the_database_stops_before_others_may_take_over(
    coordinator: MemoryCoordinator, monotonic: Clock
) -> None:
    one = member(coordinator, "one")
    lost: list[str] = []
    one.when_lost = lambda: lost.append("now")
    monotonic.now += 20
    one.check_reach()
    assert not one.is_lost
    monotonic.now += 1
    one.check_reach()
    one.check_reach()
    assert one.is_lost and monotonic.now < 1000.0 + HEARTBEAT_TTL_SECONDS
    assert "was not reached for 20 s" in one.error().message
    until(lambda: lost == ["now"], 10)
    assert one.acquire_testbed("t") is None


def test_the_heartbeat_goes_on_by_itself_until_it_is_refused(
    coordinator: MemoryCoordinator, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(membership, "_TTL_SECONDS", 0.6)
    with join(coordinator, "one", tmp_path) as one:
        clock.now += 5
        until(lambda: coordinator.executors()[0].silent == 0.0, 10)
        assert not one.is_lost
        coordinator.unregister(coordinator.executors()[0].id)
        until(lambda: one.is_lost, 10)


def test_a_server_that_is_away_for_a_moment_does_not_make_an_executor_dead(
    coordinator: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def away(*_: object) -> None:
        raise InfrastructureError("no connection")

    with join(coordinator, "one", tmp_path) as one:
        lease = one.acquire_testbed("t")
        assert lease is not None
        for name in ("heartbeat", "release"):
            monkeypatch.setattr(coordinator, name, away)
        one.beat()
        one.release(lease)
        assert not one.is_lost


def test_what_nobody_leases_any_more_is_queued_again(coordinator: MemoryCoordinator, tmp_path: Path) -> None:
    store, lab = MemoryStore(), fake.a_lab()
    request = fake.accepted(lab).model_dump_json()
    statuses = {"leased": "running", "left": "running", "resting": "paused", "over": "done"}
    for name, status in statuses.items():
        store.create(Stored(name, 1.0, request, status, lab.graph))
    with join(coordinator, "one", tmp_path) as one:
        assert one.acquire_bisection("leased") is not None
        requeue_unleased(store, coordinator)
    assert {name: store.status(name) for name in statuses} == {**statuses, "left": "queued"}
