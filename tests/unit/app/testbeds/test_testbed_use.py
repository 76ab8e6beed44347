"""Whoever uses a testbed outside a bisection keeps to its state, reservations and leases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.app.testbeds import testbed_use
from bisector.app.testbeds.testbed_use import (
    alone,
    given_back,
    holders,
    lease_holder,
    quarantine,
    use_testbed,
    use_this_machine,
)
from bisector.app.wiring import Wiring
from bisector.engine.membership import START, join
from bisector.engine.membership import testbed_resource as resource_of
from bisector.engine.state_lock import find_holder
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
        assert lease_holder(coordinator, "box").startswith(f"'{START}"), "no worker"
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
        assert holders(wiring) == {"box": "the worker 'north'"}
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


def test_what_is_drained_is_refused_before_and_without_waiting(
    wiring: Wiring, coordinator: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator.set_testbed("box", "maintenance", "", "bob@lab")
    said: list[str] = []
    with join(coordinator, "north", wiring.settings.state_dir) as worker:
        assert worker.acquire_testbed("box") is not None
        with (
            pytest.raises(RequestError, match="maintenance"),
            use_testbed(wiring, "box", said.append, lambda: True),
        ):
            pass
    assert said == []
    monkeypatch.setattr(Wiring, "shared_coordinator", None)
    with pytest.raises(RequestError, match="maintenance"):
        use(wiring)


def test_this_machine_is_not_leased_where_the_inventory_means_that_of_another_host(
    wiring: Wiring, coordinator: MemoryCoordinator
) -> None:
    coordinator.bind_testbed("here", "another-host", move=False)
    with use_this_machine(wiring, print):
        assert not coordinator.leases() and not coordinator.executors()


def test_who_counts_as_dead_while_it_waits_is_told_and_waits_no_longer(
    wiring: Wiring, coordinator: MemoryCoordinator
) -> None:
    def fence(text: str) -> None:
        coordinator.fence_silent(0.0)

    with (
        join(coordinator, "north", wiring.settings.state_dir) as worker,
        pytest.raises(InfrastructureError, match="it counts as dead"),
    ):
        assert worker.acquire_testbed("box") is not None
        limit = time.monotonic() + 10
        with use_testbed(wiring, "box", fence, lambda: time.monotonic() > limit):
            pass


def test_a_state_may_be_allowed(wiring: Wiring, coordinator: MemoryCoordinator) -> None:
    coordinator.set_testbed("box", "suspect", "", "")
    with use_testbed(wiring, "box", print, besides=("suspect",)):
        pass


def test_without_any_state_a_testbed_is_used_and_none_is_made(tmp_path: Path) -> None:
    wiring = Wiring(Settings(state_dir=tmp_path / "state", lock_dir=tmp_path / "locks"))
    wiring.lab = lab_from_inventory(
        {"_meta": {"hostvars": {"box": {"ansible_host": "192.0.2.1"}}}, "testbeds": {"hosts": ["box"]}},
        tmp_path / "lab.yml",
    )
    use(wiring)
    assert not wiring.settings.state_dir.exists()


def test_the_machine_is_claimed_against_other_programs_of_this_host(wiring: Wiring) -> None:
    found = find_holder_of(wiring)
    assert found("box") == ""
    with use_testbed(wiring, "box", print):
        assert found("box") != ""
    assert found("box") == ""


def find_holder_of(wiring: Wiring) -> Callable[[str], str]:
    """Return a function that says whether another thread cannot have a testbed."""

    def find(testbed: str) -> str:
        said: list[str] = []

        def claim() -> None:
            try:
                with wiring.claim_testbed(testbed, lambda _: None, lambda: True):
                    said.append("")
            except Interrupted as error:
                said.append(str(error))

        thread = threading.Thread(target=claim)
        thread.start()
        thread.join(10)
        return said[0]

    return find


def test_who_waits_for_another_program_of_this_host_may_be_stopped(wiring: Wiring) -> None:
    ended: list[str] = []

    def wait() -> None:
        try:
            with use_testbed(wiring, "box", lambda _: None, lambda: True):
                ended.append("used")
        except Interrupted:
            ended.append("stopped")

    thread = threading.Thread(target=wait, daemon=True)
    with wiring.claim_testbed("box", print):
        thread.start()
        thread.join(10)
        assert ended == ["stopped"]


def test_a_testbed_of_another_host_is_refused(wiring: Wiring, coordinator: MemoryCoordinator) -> None:
    coordinator.bind_testbed("here", "another-host", move=False)
    with pytest.raises(RequestError, match="'another-host' has it, not this one"):
        use(wiring, "here")


def test_with_a_state_file_one_program_executes_and_with_a_server_any_number(
    wiring: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with alone(wiring, "one"), alone(wiring, "two"):
        assert find_holder(tmp_path) is None, "leases do that"
    ours = Wiring(Settings(state_dir=tmp_path / "own", lock_dir=tmp_path / "locks"))
    monkeypatch.setattr(Wiring, "shared_coordinator", None)
    monkeypatch.setattr(Wiring, "has_store", False)
    with alone(ours, "a health check of box"):
        holder = find_holder(tmp_path / "own")
        assert holder is not None and "a health check of box" in str(holder)
        assert not [*(tmp_path / "own").glob("*.sqlite")]
    held: list[object] = []
    monkeypatch.setattr(Wiring, "has_store", True)
    monkeypatch.setattr(Wiring, "database", property(lambda _: held.append(find_holder(tmp_path / "own"))))
    with alone(ours, "another"):
        assert held == [None], "an older file is converted while nobody has the lock"


def test_a_machine_is_given_back_at_the_end_and_a_failure_is_the_error() -> None:
    machine = FakeTestbed("box", fake.a_lab())
    with given_back(machine, print):
        pass
    assert machine.given_back == 1
    machine.faults = Faults(give_back={1: InfrastructureError("it stays dark")})
    with pytest.raises(InfrastructureError, match="it stays dark"), given_back(machine, print):
        pass


@pytest.mark.parametrize(
    ("has_own_kernel", "error"), [(True, Interrupted), (False, KeyboardInterrupt)], ids=["machine", "guest"]
)
def test_an_interrupt_of_giving_back_names_a_machine_that_is_left_on_our_kernel(
    monkeypatch: pytest.MonkeyPatch, has_own_kernel: bool, error: type[BaseException]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    machine = FakeTestbed("box", fake.a_lab(), has_own_kernel=has_own_kernel)
    monkeypatch.setattr(machine, "give_back", interrupt)
    with pytest.raises(error) as e, given_back(machine, print):
        pass
    assert ("box is not given back" in str(e.value)) == has_own_kernel


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
