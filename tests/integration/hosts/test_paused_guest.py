"""Guests that somebody else pauses: real ones, which run a boot sector instead of a kernel."""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.guest.domain_xml import Guest, OnDisk, domain_xml
from bisector.adapters.guest.libvirt_connection import Domain, Hypervisor
from bisector.adapters.guest.libvirt_testbed import domain_prefix
from bisector.adapters.guest.liveness import Liveness
from bisector.errors import TestbedLost
from tests.support import small_disk
from tests.support.servers.free_port import free_port
from tests.support.waiting import until

_BOOT_SECTOR = (
    bytes.fromhex(
        "31c0"  # xor %ax,%ax
        "8ec0"  # mov %ax,%es
        "bb007c"  # again: mov $0x7c00,%bx
        "b80103"  # mov $0x0301,%ax: write one sector
        "b90200"  # mov $2,%cx: the second of the first track
        "ba8100"  # mov $0x81,%dx: of the second disk
        "cd13"  # int $0x13
        "ebf0"  # jmp again
    ).ljust(510, b"\0")
    + b"\x55\xaa"
)
"""Writes to the workload's disk again and again, by the firmware's own driver."""


@pytest.fixture
def hypervisor() -> Iterator[Hypervisor]:
    if os.geteuid() != 0:
        pytest.skip("needs the system's libvirt, as root")
    one = Hypervisor()
    yield one
    one.close()


def started(hypervisor: Hypervisor, folder: Path, state: Path, scratch: Path) -> Domain:
    """Start a guest as all are, but from its first disk: it has no kernel."""
    disk, console = folder / "disk", folder / "console.log"
    disk.write_bytes(_BOOT_SECTOR.ljust(1 << 20, b"\0"))
    console.touch()
    with scratch.open("wb") as file:
        file.truncate(1 << 20)
    name = f"{domain_prefix(state)}paused"
    guest = Guest(
        *(name, disk, OnDisk(disk, free_port()), console, "wall", False),
        memory_mb=64,
        label=(0, 0),
        scratch=scratch,
    )
    root = ET.fromstring(domain_xml(guest))
    (system,) = root.iter("os")
    for child in ("kernel", "cmdline"):
        system.remove(*system.findall(child))
    for order, one in enumerate(root.iter("disk"), 1):  # the firmware drives only disks that have one
        ET.SubElement(one, "boot", order=str(order))
    return hypervisor.start(name, ET.tostring(root, encoding="unicode"))


@pytest.mark.timeout(120)
def test_a_guest_whose_host_has_a_full_disk_is_paused_and_that_is_told(
    hypervisor: Hypervisor, state: Path, tmp_path: Path
) -> None:
    with small_disk.mounted(tmp_path / "full", 1) as full:
        small_disk.fill(full)
        domain = started(hypervisor, tmp_path, state, full / "scratch")
        try:
            until(lambda: domain.paused() is not None, 60)
            assert domain.paused() == "I/O error"
            assert domain.ended() is None, "it is there"
            lost = Liveness(tmp_path / "console.log", domain).lost()
        finally:
            domain.destroy()
    assert isinstance(lost, TestbedLost)
    assert "paused from outside (I/O error)" in lost.message


@pytest.mark.timeout(120)
def test_a_guest_is_paused_by_us_or_by_somebody_else(
    hypervisor: Hypervisor, state: Path, tmp_path: Path
) -> None:
    domain = started(hypervisor, tmp_path, state, tmp_path / "scratch")
    try:
        assert domain.paused() is None
        domain.suspend()
        assert domain.paused() is None
        domain.resume()
        assert domain.paused() is None
        subprocess.run(["virsh", "-c", hypervisor.uri, "suspend", domain.name], check=True)
        assert domain.paused() == "user"
    finally:
        domain.destroy()
    assert domain.paused() is None
