"""Emulated machines for tests: started once, put back to a known state for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.lab.machine import Machine
from tests.lab.machines import Machines

_TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "grub-mkimage": "grub-common",
    "ipmi_sim": "openipmi",
    "ipmitool": "ipmitool",
    "mcopy": "mtools",
    "mkfs.vfat": "dosfstools",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what is left out and how to run it."""
    if os.environ.get("LAB"):
        return
    for item in items:
        if item.get_closest_marker("lab"):
            item.add_marker(
                pytest.mark.skip(reason="emulated machines, minutes each: 'make test-lab' runs it")
            )


@pytest.fixture(scope="session")
def machine_of() -> Iterator[Callable[[str], Machine]]:
    """Return what gives a machine of a kind, the same one for all tests; it is put back first."""
    missing = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root, and the packages {' '.join(_TOOLS.values())}")
    with Machines({}) as lab:

        def give(kind: str) -> Machine:
            machine = next((one for one in lab.machines if one.name == kind), None) or lab.add(kind, kind)
            machine.put_back()
            return machine

        yield give
