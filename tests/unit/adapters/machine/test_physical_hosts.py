"""Two names of one machine are one machine, two machines are two, whatever the inventory calls them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.machine import physical_hosts
from bisector.adapters.machine.physical_hosts import check_distinct, claim_names, host_names, system_name
from bisector.errors import RequestError
from bisector.schemas.lab import BuilderSpec, Lab, TestbedSpec, lab_from_inventory

HOSTS: Mapping[str, Mapping[str, Any]] = {
    "guest": {"perfbisect_kind": "libvirt"},
    "guest-2": {"perfbisect_kind": "libvirt"},
    "guest_2": {"perfbisect_kind": "libvirt"},
    "this": {"perfbisect_kind": "local"},
    "box": {"ansible_host": "192.0.2.1"},
    "same-box": {"ansible_host": "192.0.2.1"},
    "other-port": {"ansible_host": "192.0.2.1", "ansible_port": 2222},
    "named": {"ansible_host": "rack.example.org"},
    "far": {"ansible_host": "192.0.2.2"},
    "loopback": {"ansible_host": "127.0.0.2", "ansible_port": 2200},
    "vm-here": {"ansible_host": "198.51.100.1", "perfbisect_host": "localhost"},
    "vm-on-box": {"ansible_host": "198.51.100.2", "perfbisect_host": "box"},
    "vm-by-address": {"ansible_host": "198.51.100.3", "perfbisect_host": "192.0.2.1"},
    "vm-with-builder": {"ansible_host": "198.51.100.4", "perfbisect_host": "here"},
}
BUILDERS: Mapping[str, Mapping[str, Any]] = {
    "here": {"ansible_connection": "local"},
    "here-too": {"ansible_host": "localhost"},
    "here-inside": {"ansible_host": "localhost", "ansible_port": 2222},
    "on-box-again": {"ansible_host": "192.0.2.1", "perfbisect_host": "here"},
    "on-box": {"ansible_host": "192.0.2.1"},
    "on-rack": {"ansible_host": "rack.example.org"},
    "elsewhere": {"ansible_host": "192.0.2.9"},
}
ADDRESSES = {"rack.example.org": ["192.0.2.7", "2001:db8::7"]}


@pytest.fixture(autouse=True)
def known_names(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = physical_hosts._resolve
    monkeypatch.setattr(physical_hosts, "_resolve", lambda name: ADDRESSES.get(name) or resolve(name))


def lab() -> Lab:
    data = {
        "testbeds": {"hosts": list(HOSTS)},
        "builders": {"hosts": list(BUILDERS)},
        "_meta": {"hostvars": {**HOSTS, **BUILDERS}},
    }
    return lab_from_inventory(data, Path("lab.yml"))


def machine(name: str) -> TestbedSpec | BuilderSpec:
    return lab().testbed(name) if name in HOSTS else lab().builder(name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("guest", "here", True),
        ("guest", "here-too", True),
        ("guest", "loopback", True),
        ("guest", "this", True),
        ("vm-here", "here", True),
        ("vm-with-builder", "guest", True),
        ("box", "same-box", True),
        ("box", "other-port", True),
        ("box", "on-box", True),
        ("vm-on-box", "box", True),
        ("vm-on-box", "vm-by-address", True),
        ("named", "on-rack", True),
        ("box", "far", False),
        ("box", "here", False),
        ("guest", "elsewhere", False),
        ("named", "box", False),
        ("vm-on-box", "here", False),
    ],
)
def test_what_shares_a_machine_shares_its_lock(one: str, other: str, same: bool) -> None:
    names = [set(host_names(lab(), machine(name))) for name in (one, other)]
    assert all(names)
    assert bool(names[0] & names[1]) is same


def test_an_address_of_this_machine_is_this_machine() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but its own")
        address = probe.getsockname()[0]
    assert physical_hosts._is_here(address)
    assert not physical_hosts._is_here("192.0.2.1")


def test_a_name_that_nobody_knows_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert physical_hosts._resolve("only-in-ssh-config") == ["only-in-ssh-config"]
    assert not physical_hosts._is_here("only-in-ssh-config")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("box", "same-box", True),
        ("box", "other-port", False),  # two guests behind one address
        ("box", "far", False),
        ("this", "this", True),
        ("vm-on-box", "box", False),
    ],
)
def test_a_testbed_is_known_by_where_it_answers(one: str, other: str, same: bool) -> None:
    names = [set(claim_names(lab().testbed(name))) for name in (one, other)]
    assert all(names)
    assert bool(names[0] & names[1]) is same


def test_guests_are_nobody_elses() -> None:
    assert claim_names(lab().testbed("guest")) == ()


def test_two_testbeds_that_are_one_machine_are_refused() -> None:
    beds = [lab().testbed(name) for name in ("far", "box", "guest", "other-port")]
    check_distinct(beds)
    with pytest.raises(RequestError, match="the testbeds 'box' and 'same-box' are one machine") as error:
        check_distinct([*beds, lab().testbed("same-box")])
    assert error.value.cure == "name one of them: --testbed box"


def test_guests_of_one_name_are_refused() -> None:
    beds = [lab().testbed(name) for name in ("guest", "guest-2", "guest_2")]
    check_distinct(beds[:2])
    check_distinct(beds[::2])
    with pytest.raises(RequestError, match="guests of the testbeds 'guest-2' and 'guest_2'") as error:
        check_distinct(beds)
    assert error.value.cure.endswith("--testbed guest-2")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("on-box", "on-box-again", True),
        ("on-box", "elsewhere", False),
        ("here", "on-box", False),
        ("here-too", "here-inside", False),  # a container, with compilers of its own
    ],
)
def test_a_builder_is_named_by_where_it_is_reached(one: str, other: str, same: bool) -> None:
    names = [system_name(lab().builder(name).connection) for name in (one, other)]
    assert (names[0] == names[1]) is same
    assert all("/" not in name for name in names)


def test_this_machine_is_called_here() -> None:
    assert system_name(lab().builder("here").connection) == "here"
