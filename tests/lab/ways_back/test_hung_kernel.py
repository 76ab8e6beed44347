"""A kernel that hangs from its first instruction on: each way by which a machine comes back from it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.errors import BootFailed
from bisector.ports import Kernel
from tests.lab.campaign.given_back import not_given_back
from tests.lab.listed_kernels import make_hang
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel
from tests.lab.ways_back.direct_testbed import Told, open_directly
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]


def hanging_kernel(folder: Path, own: str) -> Kernel:
    """Return Debian's kernel, changed so that it goes round in a circle. own: another release."""
    kernel = debian_kernel(folder, own)
    image = folder / "vmlinuz"
    shutil.copy(kernel.image, image)
    make_hang(image)
    return replace(kernel, image=image)


def test_a_watchdog_ends_it_where_nothing_else_can(
    machine_of: Callable[[str], Machine], tmp_path: Path
) -> None:
    machine = machine_of("ipmi")
    testbed = open_directly(machine, tmp_path, without=("perfbisect_power", "perfbisect_console"))
    failure, told = boot_that_fails(testbed, machine, tmp_path)
    assert any(text.endswith("s by i6300esb") for text in told), told
    assert "came back by itself with its own kernel" in failure.message
    testbed.give_back(told)
    assert not_given_back(machine) == []


def test_a_pdu_ends_it_where_the_bmc_is_dead(machine_of: Callable[[str], Machine], tmp_path: Path) -> None:
    machine = machine_of("two-stage")
    testbed = open_directly(machine, tmp_path, without=("perfbisect_console",))  # that is the BMC's, too
    machine.bmc.kill()
    failure, told = boot_that_fails(testbed, machine, tmp_path)
    assert "came back with its own kernel once it was switched off and on" in failure.message
    testbed.give_back(told)
    machine.bmc.start()
    assert not_given_back(machine) == []


def test_a_command_that_only_reboots_ends_it(machine_of: Callable[[str], Machine], tmp_path: Path) -> None:
    machine = machine_of("plain")
    testbed = open_directly(machine, tmp_path)
    failure, told = boot_that_fails(testbed, machine, tmp_path)
    assert "came back with its own kernel once it was switched off and on" in failure.message
    testbed.give_back(told)
    assert not_given_back(machine) == []


def boot_that_fails(testbed: SSHTestbed, machine: Machine, folder: Path) -> tuple[BootFailed, Told]:
    """Boot the kernel; return how that failed, and what was told. The machine runs its own kernel then."""
    kernel, told = hanging_kernel(folder, machine.base.kernel), Told()
    boot = folder / "boot"
    boot.mkdir()
    started = time.monotonic()
    with pytest.raises(BootFailed) as failed:
        testbed.boot(kernel, shell_job(folder, "echo real: 1\n"), boot, told)
    print(f"{machine.name}: back after {time.monotonic() - started:.0f} s: {failed.value.message}")
    print(failed.value.details)
    assert machine.kernel() == machine.base.kernel
    return failed.value, told
