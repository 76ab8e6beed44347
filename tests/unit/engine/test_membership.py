"""An executor among others: its heartbeat, its leases, and what becomes of those that are silent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine import membership
from bisector.engine.membership import Membership, join, requeue_unleased, resource_of
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


def test_one_executor_has_a_bisection_or_testbed_at_a_time(coordinator: MemoryCoordinator) -> None:
    with join(coordinator, "one") as one, join(coordinator, "two") as two:
        lease = one.acquire_bisection("b")
        assert lease is not None and lease.resource == resource_of("b")
        assert two.acquire_bisection("b") is None
        assert two.acquire_testbed("b") is not None, "a testbed of the same name is another thing"
        one.release(lease)
        assert two.acquire_bisection("b") is not None
    assert coordinator.executors() == []
    assert coordinator.leases() == []


def test_a_living_executor_keeps_its_name(coordinator: MemoryCoordinator) -> None:
    with join(coordinator, "one"), pytest.raises(RequestError), join(coordinator, "one"):
        pass
    with join(coordinator, "one"):
        pass


def test_who_is_silent_is_fenced_by_the_others_and_knows_it_at_its_next_act(
    coordinator: MemoryCoordinator, clock: Clock
) -> None:
    coordinator.register("one", "one")
    coordinator.register("two", "two")
    one, two = Membership(coordinator, "one"), Membership(coordinator, "two")
    assert one.acquire_bisection("b") is not None
    clock.now += HEARTBEAT_TTL_SECONDS - 1
    two.beat()
    assert two.acquire_bisection("b") is None, "it may still come back"
    clock.now += 1
    two.beat()
    assert two.acquire_bisection("b") is not None
    assert not one.is_lost
    assert one.acquire_testbed("t") is None
    assert one.is_lost
    assert "counts as dead" in one.error().message
    assert not two.is_lost


def test_the_heartbeat_goes_on_by_itself_until_it_is_refused(
    coordinator: MemoryCoordinator, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "_TTL_SECONDS", 0.06)
    with join(coordinator, "one") as one:
        clock.now += 5
        until(lambda: coordinator.executors()[0].silent == 0.0, 10)
        assert not one.is_lost
        coordinator.register("other", "one", replace=True)
        until(lambda: one.is_lost, 10)


def test_a_server_that_is_away_does_not_make_an_executor_dead(
    coordinator: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise InfrastructureError("no connection")

    with join(coordinator, "one") as one:
        lease = one.acquire_testbed("t")
        assert lease is not None
        for name in ("heartbeat", "release"):
            monkeypatch.setattr(coordinator, name, away)
        one.beat()
        one.release(lease)
        assert not one.is_lost


def test_what_nobody_leases_any_more_is_queued_again(coordinator: MemoryCoordinator) -> None:
    store, lab = MemoryStore(), fake.a_lab()
    request = fake.accepted(lab).model_dump_json()
    statuses = {"leased": "running", "left": "running", "resting": "paused", "over": "done"}
    for name, status in statuses.items():
        store.create(Stored(name, 1.0, request, status, lab.graph))
    with join(coordinator, "one") as one:
        assert one.acquire_bisection("leased") is not None
        requeue_unleased(store, coordinator)
    assert {name: store.status(name) for name in statuses} == {**statuses, "left": "queued"}
