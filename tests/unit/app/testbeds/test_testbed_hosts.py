"""A testbed that is another machine on each host belongs to one of them, on a database server."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.app import find_culprit
from bisector.app.testbeds import testbed_hosts
from bisector.app.testbeds.testbed_hosts import bind_testbeds, has_testbed, misplaced_testbeds, require_own
from bisector.app.testbeds.testbed_use import use_testbed, use_this_machine
from bisector.app.wiring import Wiring
from bisector.errors import ExitCode, RequestError
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import Settings

LOCAL = {"perfbisect_kind": "local", "ansible_connection": "local"}
KINDS = {
    "guest": {"perfbisect_kind": "libvirt"},
    "here": LOCAL,
    "shell": {"ansible_connection": "local"},
    "box": {"ansible_host": "192.0.2.1"},
}


class Hosts:
    """Hosts of one lab, by name; each has the same inventory and database."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        self.coordinator = MemoryCoordinator(time.time)
        monkeypatch.setattr(Wiring, "has_store", True)

    def wiring(self, host: str, workers: Mapping[str, str] | None = None, *, server: bool = True) -> Wiring:
        """Return the wiring of a program on a host. workers: of testbeds."""
        named = workers or {}
        self._monkeypatch.setattr(testbed_hosts, "this_host", lambda: host)
        self._monkeypatch.setattr("socket.gethostname", lambda: host)
        self._monkeypatch.setattr(Wiring, "shared_coordinator", self.coordinator if server else None)
        lab, locks = self._folder / "lab.yml", self._folder / "locks"
        made = Wiring(Settings(state_dir=self._folder, lock_dir=locks, lab=lab))
        made.__dict__["coordinator"] = self.coordinator
        hosts = {name: {**known, "perfbisect_worker": named.get(name, "")} for name, known in KINDS.items()}
        made.lab = lab_from_inventory({"_meta": {"hostvars": hosts}, "testbeds": {"hosts": [*hosts]}}, lab)
        return made

    def refused(self, host: str, worker: str = "", **workers: str) -> list[str]:
        """Return the testbeds that a host may not use."""
        wiring = self.wiring(host, workers)
        return [*bind_testbeds(wiring, wiring.lab.testbeds, worker)]


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(tmp_path, monkeypatch)


def test_the_first_host_has_what_belongs_to_nobody_under_whichever_name_it_works(hosts: Hosts) -> None:
    assert hosts.refused("a") == hosts.refused("a", "rack1") == hosts.refused("a", "rack2") == []
    assert hosts.refused("b", "rack3") == hosts.refused("b") == ["guest", "here", "shell"]


def test_the_worker_that_the_inventory_names_has_it_wherever_it_was(hosts: Hosts) -> None:
    assert hosts.refused("a") == []
    assert hosts.refused("b", "rack3", guest="rack3") == ["here", "shell"]
    assert hosts.refused("b", guest="rack3") == ["here", "shell"], "'calibrate' on the worker's host"
    assert hosts.refused("a", guest="rack3") == ["guest"]


def test_who_asks_for_the_named_worker_is_told_of_no_host_that_had_it(hosts: Hosts) -> None:
    assert hosts.refused("a") == []
    wiring = hosts.wiring("b", {"guest": "rack3"})
    assert list(misplaced_testbeds(wiring, wiring.lab.testbeds, "rack3")) == ["here", "shell"]
    assert hosts.coordinator.testbed_hosts()["guest"] == "a", "it was only asked"


def test_before_its_worker_came_nobody_else_has_it(hosts: Hosts) -> None:
    assert hosts.refused("a", guest="rack3") == ["guest"]
    assert hosts.coordinator.testbed_hosts() == {"here": "a", "shell": "a"}
    assert hosts.refused("a", guest="a") == [], "the default name of a worker is its host's"


def test_a_worker_with_a_name_of_its_own_has_not_its_hosts(hosts: Hosts) -> None:
    assert hosts.refused("b", "rack1", guest="b") == ["guest"]


def test_whoever_only_asks_takes_nothing_and_a_state_file_knows_no_hosts(hosts: Hosts) -> None:
    wiring = hosts.wiring("a")
    assert misplaced_testbeds(wiring, wiring.lab.testbeds) == {}
    wiring = hosts.wiring("a", {"guest": "rack3"}, server=False)
    assert bind_testbeds(wiring, wiring.lab.testbeds, "") == {}
    assert hosts.coordinator.testbed_hosts() == {}


def test_the_error_names_file_host_key_and_cure(hosts: Hosts, tmp_path: Path) -> None:
    require_own(hosts.wiring("a"), ["guest", "box", "gone"])
    with pytest.raises(RequestError) as error:
        require_own(hosts.wiring("b"), ["guest"])
    assert error.value.exit_code == ExitCode.WRONG_REQUEST
    assert error.value.message == (
        f"{tmp_path}/lab.yml: host 'guest' is another machine on each host, and 'a' has it, not this one (b)"
    )
    assert error.value.details.startswith("perfbisect_worker: not set; ")
    assert error.value.cure.startswith("set perfbisect_worker of 'guest' to the name of the worker on that")
    with pytest.raises(RequestError) as error:
        require_own(hosts.wiring("c", {"here": "rack3"}), ["here"])
    assert error.value.message.endswith("and it is worker 'rack3's, not this one (c)")
    assert error.value.cure.startswith("'perfbisect worker rack3' on its host")


def test_a_testbed_is_used_on_its_host_only_and_another_host_does_not_hold_it(hosts: Hosts) -> None:
    with use_testbed(hosts.wiring("a"), "here", print):
        pass
    with pytest.raises(RequestError, match="'a' has it"), use_testbed(hosts.wiring("b"), "here", print):
        pass
    with use_this_machine(hosts.wiring("b"), print):
        assert [lease.resource for lease in hosts.coordinator.leases()] == []
    with use_this_machine(hosts.wiring("a"), print):
        assert [lease.resource for lease in hosts.coordinator.leases()] == ["testbed here"]


def test_a_host_has_the_testbeds_of_its_inventory_that_no_other_host_or_worker_has(hosts: Hosts) -> None:
    named = {"guest": "rack3"}
    here = hosts.wiring("a", named)
    assert [has_testbed(here, name, "rack1") for name in ("here", "box", "guest", "gone")] == [
        True,
        True,
        False,
        False,
    ]
    there = hosts.wiring("b", named)
    assert [has_testbed(there, name, "rack3") for name in ("here", "box", "guest")] == [False, True, True]
    alone = hosts.wiring("b", named, server=False)
    assert has_testbed(alone, "here", "") and has_testbed(alone, "gone", ""), (
        "what is wrong is told of the night"
    )
    boxes = hosts.wiring("b", {"box": "rack3"})
    assert [has_testbed(boxes, "box", worker) for worker in ("rack3", "rack1")] == [True, False]


def test_of_two_hosts_that_ask_at_once_one_has_it(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one has bound it since we looked."""
    hosts.coordinator.bind_testbed("guest", "b", move=False)
    monkeypatch.setattr(hosts.coordinator, "testbed_hosts", dict)
    assert hosts.refused("a") == ["guest"]
    monkeypatch.undo()
    assert hosts.coordinator.testbed_hosts()["guest"] == "b"


def test_a_worker_that_is_refused_takes_no_testbed_from_the_one_of_its_name(hosts: Hosts) -> None:
    assert hosts.refused("a", "rack3", guest="rack3") == []
    hosts.coordinator.register("rack3@a-1", "rack3")

    def work() -> None:
        wiring = hosts.wiring("b", {"guest": "rack3", "here": "rack1", "shell": "rack1"})
        wiring.__dict__["store"] = MemoryStore(hosts.coordinator)
        find_culprit.serve(wiring, lambda name, event: None, threading.Event(), until_idle=True, name="rack3")

    with pytest.raises(RequestError, match="rack3"):
        work()
    assert hosts.coordinator.testbed_hosts()["guest"] == "a"
    hosts.coordinator.unregister("rack3@a-1")
    work()
    assert hosts.coordinator.testbed_hosts()["guest"] == "b"
