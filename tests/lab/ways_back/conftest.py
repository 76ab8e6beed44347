"""Testbeds in this process, each ended after its test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.machine_mark import MachineUser
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory
from tests.lab.machine import Machine
from tests.lab.ways_back.direct_testbed import OpenDirectly


@pytest.fixture
def open_directly(tmp_path: Path) -> Iterator[OpenDirectly]:
    """Return what opens the testbed of a machine.

    Giving a machine back ends what renews its mark. A test that fails, or whose machine is lost, does not
    come to that, and the mark would be set on the machine of a later test, which has the same address.
    """
    opened: list[SSHTestbed] = []

    def open_one(machine: Machine, without: tuple[str, ...] = (), **changed: object) -> SSHTestbed:
        variables: Mapping[str, Any] = {**machine.host_variables(), **changed}
        known = {name: value for name, value in variables.items() if name not in without}
        listing = {"_meta": {"hostvars": {machine.name: known}}, "testbeds": {"hosts": [machine.name]}}
        inventory = tmp_path / "lab.yml"
        spec = lab_from_inventory(listing, inventory).testbed(machine.name)
        user = MachineUser("tests", "user=tests host=here")
        ansible = Ansible(resource("playbooks"), inventory)
        opened.append(SSHTestbed(spec, ansible, user, tmp_path / "state"))
        return opened[-1]

    yield open_one
    for testbed in opened:
        testbed.keeper.end()
