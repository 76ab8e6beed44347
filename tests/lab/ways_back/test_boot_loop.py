"""Kernels that reset the machine: it is their failure, also where the machine would boot them for ever."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.ports import Kernel
from tests.lab.campaign.given_back import not_given_back
from tests.lab.listed_kernels import make_reset
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel
from tests.lab.ways_back.direct_testbed import OpenDirectly, boot_that_fails

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

_RESTARTS = "#!/bin/sh\nexec busybox reboot -f\n"
"""In place of init. What it ends is a kernel that has booted as far as that."""


def without_modules(machine: Machine, folder: Path) -> Kernel:
    """Return a kernel of another release than the machine's own, which never comes to load a module."""
    return replace(debian_kernel(folder, machine.base.kernel), modules=None)


def test_a_kernel_that_resets_the_machine_at_once_fails(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine = machine_of("ipmi")
    testbed = open_directly(machine)
    sound = without_modules(machine, tmp_path)
    image = tmp_path / "vmlinuz-reset"
    shutil.copy(sound.image, image)
    make_reset(image)
    failure, told = boot_that_fails(testbed, machine, replace(sound, image=image), tmp_path)
    assert "the kernel ended before its console showed that it had started" in failure.message
    assert "the machine came back by itself with its own kernel" in failure.message
    testbed.give_back(told)
    assert not_given_back(machine) == []


def test_a_kernel_that_restarts_for_ever_is_taken_away_from_the_machine(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    """The BMC takes 'Once' for 'Continuous', so each restart boots the kernel under test from the network."""
    machine = machine_of("pxe")
    machine.run("sh", "-c", f"printf '{_RESTARTS}' >/var/restarts && chmod +x /var/restarts && sync")
    (machine.folder / "boot.kept").touch()
    try:
        line = f"root={machine.base.root} rw console=ttyS0 panic=10 no_timer_check init=/var/restarts"
        testbed = open_directly(machine, perfbisect_cmdline=line)
        kernel = without_modules(machine, tmp_path)
        failure, told = boot_that_fails(testbed, machine, kernel, tmp_path)
        assert "the kernel started again and again while it booted" in failure.message
        console = (tmp_path / "boot" / "console.log").read_text(errors="replace")
        assert console.count(f"Linux version {kernel.release} ") > 1
        testbed.give_back(told)
        assert not_given_back(machine) == []
    finally:
        (machine.folder / "boot.kept").unlink()
        machine.run("rm", "-f", "/var/restarts")
