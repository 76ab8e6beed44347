"""A machine of the lab as the testbed that a search uses, in this process: one boot, no search around it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.machine_mark import MachineUser
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.errors import BootFailed
from bisector.ports import Kernel
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory
from tests.lab.machine import Machine
from tests.support.workload_jobs import shell_job


def open_directly(
    machine: Machine, folder: Path, without: tuple[str, ...] = (), **changed: object
) -> SSHTestbed:
    """Return the testbed. without: variables of its inventory that are left out; changed: other ones."""
    variables: Mapping[str, Any] = {**machine.host_variables(), **changed}
    known = {name: value for name, value in variables.items() if name not in without}
    listing = {"_meta": {"hostvars": {machine.name: known}}, "testbeds": {"hosts": [machine.name]}}
    inventory = folder / "lab.yml"
    spec = lab_from_inventory(listing, inventory).testbed(machine.name)
    user = MachineUser("tests", "user=tests host=here")
    return SSHTestbed(spec, Ansible(resource("playbooks"), inventory), user, folder / "state")


class Told(list[str]):
    """What was told of a boot, printed as it comes: `pytest -s` shows it."""

    def __call__(self, text: str) -> None:
        """Take one more."""
        print(f"    {text}", flush=True)
        self.append(text)


def boot_that_fails(
    testbed: SSHTestbed, machine: Machine, kernel: Kernel, folder: Path
) -> tuple[BootFailed, Told]:
    """Boot the kernel; return how that failed, and what was told. The machine runs its own kernel then."""
    boot, told = folder / "boot", Told()
    boot.mkdir()
    started = time.monotonic()
    with pytest.raises(BootFailed) as failed:
        testbed.boot(kernel, shell_job(folder, "echo real: 1\n"), boot, told)
    print(f"{machine.name}: back after {time.monotonic() - started:.0f} s: {failed.value.message}")
    print(failed.value.details)
    assert machine.kernel() == machine.base.kernel
    return failed.value, told
