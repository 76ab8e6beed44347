"""Each way to boot a kernel once, on an emulated machine: the kernel runs, and then nothing of it is left."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.boot.boot_request import PlayedBoot
from bisector.adapters.machine.bring_back import Rescue
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.machine.power.open_power import open_boot_override
from bisector.ports import Job, Kernel, MetricSpec
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory
from tests.lab.debian_kernel import DEFAULT_PACKAGE, DebianKernel, newest, unpack
from tests.lab.disk_image import FILES
from tests.lab.machine import BOOT_SECONDS, Machine
from tests.lab.machines import LAB_CACHE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
LAB = pytest.mark.lab

UNDER_TEST = r"^linux-image-(?!%s-)6\.1\.0-[0-9]+-cloud-amd64-unsigned$"
"""Packages of another release than a machine's own, with all that a machine boots from built in."""

WITH_INITRAMFS = r"^linux-image-6\.1\.0-[0-9]+-amd64-unsigned$"
"""What a PC has: its disks' drivers and file systems are modules, so it boots with an initramfs alone."""

_DISK = ("nvme", "ext4", "crc32c_generic")
"""What such a kernel needs for a machine's root; ext4 asks for its checksum by name."""

MARK = "lab.mark=4G$4G;a|b{c}"
"""A parameter that no kernel has, of characters that GRUB's menu gives a meaning of their own."""


def debian_kernel(folder: Path, own: str) -> Kernel:
    """Return Debian's own kernel with all its modules, as a builder would. own: another release."""
    kernel = unpack(newest(UNDER_TEST % re.escape(own)), LAB_CACHE)
    return _built(kernel, kernel.tree, folder)


def own_kernel(machine: Machine) -> Kernel:
    """Return the machine's own kernel, to be booted once more as one under test: its modules are there."""
    own, image = machine.base.kernel, unpack(DEFAULT_PACKAGE, LAB_CACHE).image
    return Kernel(own, "debian", own, image, image, image, own, "", 1.0, True)


def kernel_with_initramfs(folder: Path, own: str) -> Kernel:
    """Return Debian's kernel for PCs, with the modules that a machine of the lab can use."""
    kernel, tree = unpack(newest(WITH_INITRAMFS), LAB_CACHE), folder / "tree"
    kernel.copy_modules([*(FILES / "modules").read_text().split(), *_DISK], tree)
    return _built(kernel, tree, folder)


def _built(kernel: DebianKernel, tree: Path, folder: Path) -> Kernel:
    archive = folder / "modules.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(tree / "lib", arcname="lib")
    made = Kernel(
        *(kernel.version, "debian", kernel.version, kernel.image, kernel.config, kernel.config),
        *(kernel.version, "", 1.0, True),
    )
    return replace(made, modules=archive)


@pytest.mark.parametrize(
    ("kind", "kernel_of"),
    [
        pytest.param("ipmi", debian_kernel, id="kexec"),
        pytest.param("ipmi", kernel_with_initramfs, id="kexec with initramfs", marks=LAB),
        pytest.param("dracut", kernel_with_initramfs, id="kexec with initramfs by dracut", marks=LAB),
        pytest.param("redfish", kernel_with_initramfs, id="GRUB with initramfs", marks=LAB),
        pytest.param("uefi", debian_kernel, id="GRUB on UEFI", marks=LAB),
        pytest.param("systemd-boot", debian_kernel, id="systemd-boot", marks=LAB),
        pytest.param("pxe", debian_kernel, id="PXE by Redfish", marks=LAB),
    ],
)
def test_a_kernel_with_modules_is_booted_once_and_nothing_of_it_is_left(
    machine_of: Callable[[str], Machine], tmp_path: Path, kind: str, kernel_of: Callable[[Path, str], Kernel]
) -> None:
    machine = machine_of(kind)
    machine.wait_for_ssh()
    default = [word for word in machine.run("cat", "/proc/cmdline").split() if "BOOT_IMAGE=" not in word]
    hosts = {"box": machine.host_variables() | {"perfbisect_cmdline": " ".join([*default, MARK])}}
    listing = {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": ["box"]}}
    spec = lab_from_inventory(listing, tmp_path / "lab.yml").testbed("box")
    reach = MachineReach(machine.ssh_host, BOOT_SECONDS)
    ansible = Ansible(resource("playbooks"), tmp_path / "lab.yml")
    method = PlayedBoot(spec, ansible, reach, open_boot_override(spec))
    own = method.running()
    assert (own.ours, own.release) == ("", machine.base.kernel)
    kernel = kernel_of(tmp_path, own.release)
    assert kernel.release != own.release
    job = Job("toy", tmp_path, ("toy",), (MetricSpec("real", "s"),), environment={"kaslr": "off"})

    for number in range(2):
        if method.must_leave_kernel():
            Rescue("box", reach, method, None, BOOT_SECONDS).leave_kernel_under_test(print)
        left = method.request_boot(kernel, job, tmp_path / f"boot{number}", print)
        machine.wait_for_ssh(BOOT_SECONDS, other_than=left)
        method.end_request(up=True)
        now = method.running()
        assert now.release == kernel.release and now.ours, (
            f"left {left}, now {now}:\n{machine.console()[-4000:]}"
        )
        assert now.default_release == own.release
        assert {"nokaslr", MARK} <= set(machine.run("cat", "/proc/cmdline").split())
        assert "virtio_net" in machine.run("cat", "/proc/modules"), "its own modules are loaded"

    method.restart()
    machine.wait_for_ssh(BOOT_SECONDS, other_than=now.boot_id)
    method.forget()
    back = method.running()
    assert (back.release, back.ours, back.left) == (own.release, "", ())
