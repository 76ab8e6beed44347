"""Whoever uses a testbed outside a bisection keeps to its state, reservations and leases."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.app.testbeds import testbed_use
from bisector.app.testbeds.testbed_use import given_back, quarantine, use_testbed, use_this_machine
from bisector.app.wiring import Wiring
from bisector.engine.membership import join
from bisector.engine.membership import testbed_resource as resource_of
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.model.leases import TestbedState
from bisector.model.machines.health import QUARANTINED_BY
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import Settings
from bisector.testing.fake_testbed import FakeTestbed
from bisector.testing.fakes import Faults
from tests.support import fake_bisection as fake


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator(time.time)


@pytest.fixture
def wiring(tmp_path: Path, coordinator: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    """Return the wiring of a program on a database server, with the testbeds 'here' and 'box'."""
    monkeypatch.setattr(testbed_use, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(Wiring, "has_store", True)
    monkeypatch.setattr(Wiring, "shared_coordinator", coordinator)
    made = Wiring(Settings(state_dir=tmp_path, lock_dir=tmp_path / "locks", lab=tmp_path / "lab.yml"))
    variables = {
        "here": {"perfbisect_kind": "local", "ansible_connection": "local"},
        "box": {"ansible_host": "192.0.2.1", "ansible_port": 22},
    }
    made.__dict__["coordinator"] = coordinator
    made.lab = lab_from_inventory(
        {"_meta": {"hostvars": variables}, "testbeds": {"hosts": [*variables]}}, tmp_path / "lab.yml"
    )
    return made


def use(wiring: Wiring, testbed: str = "box") -> None:
    with use_testbed(wiring, testbed, lambda _: None):
        pass


@pytest.mark.parametrize("state", ["maintenance", "suspect", "retired"])
def test_a_testbed_out_of_use_is_refused_with_the_reason(
    wiring: Wiring, coordinator: MemoryCoordinator, state: str
) -> None:
    coordinator.set_testbed("box", state, "new memory", "bob@lab")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=f"'box' is not to be used: {state}: new memory") as e:
        use(wiring)
    assert "testbed release" in e.value.cure
    coordinator.set_testbed("here", state, "new memory", "bob@lab")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="'here'"), use_this_machine(wiring, print):
        pass


def test_ones_own_reservation_is_a_permission_and_anothers_is_not(
    wiring: Wiring, coordinator: MemoryCoordinator
) -> None:
    coordinator.reserve("box", wiring.settings.owner, time.time() + 100)
    use(wiring)
    coordinator.reserve("here", "ann@lab", time.time() + 100)
    with pytest.raises(RequestError, match=r"'here' is not to be used: reserved by ann@lab until 20\d\d-"):
        use(wiring, "here")


def test_the_lease_is_held_while_it_is_used_and_free_afterwards(
    wiring: Wiring, coordinator: MemoryCoordinator
) -> None:
    with use_testbed(wiring, "box", print):
        assert [lease.resource for lease in coordinator.leases()] == [resource_of("box")]
    assert not coordinator.leases() and not coordinator.executors()
    with use_this_machine(wiring, print):
        assert [lease.resource for lease in coordinator.leases()] == [resource_of("here")]


def test_it_is_waited_for_while_a_worker_uses_it(wiring: Wiring, coordinator: MemoryCoordinator) -> None:
    said: list[str] = []
    got = threading.Event()

    def wait() -> None:
        with use_testbed(wiring, "box", said.append):
            got.set()

    with join(coordinator, "north", wiring.settings.state_dir) as worker:
        lease = worker.acquire_testbed("box")
        assert lease is not None
        with pytest.raises(Interrupted), use_testbed(wiring, "box", lambda _: None, lambda: True):
            pass
        thread = threading.Thread(target=wait)
        thread.start()
        assert not got.wait(0.1)
        worker.release(lease)
        thread.join(10)
    assert got.is_set()
    assert said == ["waiting for the testbed 'box': the worker 'north' uses it"]


def test_what_was_drained_while_we_waited_is_refused(wiring: Wiring, coordinator: MemoryCoordinator) -> None:
    with join(coordinator, "north", wiring.settings.state_dir) as worker:
        lease = worker.acquire_testbed("box")
        assert lease is not None

        def drain(text: str) -> None:
            coordinator.set_testbed("box", "maintenance", "", "bob@lab")
            worker.release(lease)

        with pytest.raises(RequestError, match="maintenance"), use_testbed(wiring, "box", drain):
            pass
    assert not coordinator.leases()


def test_a_state_may_be_allowed(wiring: Wiring, coordinator: MemoryCoordinator) -> None:
    coordinator.set_testbed("box", "suspect", "", "")
    with use_testbed(wiring, "box", print, besides=("suspect",)):
        pass


def test_a_machine_that_is_not_given_back_is_told_behind_another_error() -> None:
    faults = Faults(give_back={1: InfrastructureError("it stays dark", cure="switch it on")})
    machine, told = FakeTestbed("box", fake.a_lab(), faults=faults, has_own_kernel=True), list[str]()
    with pytest.raises(KeyboardInterrupt), given_back(machine, told.append):
        raise KeyboardInterrupt
    assert told == ["it stays dark; switch it on"]


@pytest.mark.parametrize("state", ["maintenance", "retired"])
def test_a_machine_that_fails_is_suspect_unless_people_have_said_what_it_is_for(
    wiring: Wiring, coordinator: MemoryCoordinator, state: TestbedState
) -> None:
    coordinator.set_testbed("box", state, "new memory", "bob@lab")
    for testbed in ("box", "here"):
        quarantine(wiring, testbed, "it does not boot")
    found = {one.name: (one.state, one.reason, one.by) for one in coordinator.testbeds()}
    assert found == {
        "box": (state, "new memory", "bob@lab"),
        "here": ("suspect", "it does not boot", QUARANTINED_BY),
    }
