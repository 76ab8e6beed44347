"""A kernel that hangs from its first instruction on: each way by which a machine comes back from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.errors import InfrastructureError
from bisector.ports import Kernel
from tests.lab.campaign.given_back import not_given_back
from tests.lab.ipmi_bmc import IpmiBmc
from tests.lab.listed_kernels import make_hang
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel, kernel_with_initramfs
from tests.lab.ways_back.direct_testbed import OpenDirectly, Told, boot_that_fails
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]


def hung(kernel: Kernel, folder: Path) -> Kernel:
    """Return this kernel, changed so that it goes round in a circle."""
    image = folder / "vmlinuz-hung"
    shutil.copy(kernel.image, image)
    make_hang(image)
    return replace(kernel, image=image)


def assert_switched_off_and_on(testbed: SSHTestbed, machine: Machine, folder: Path) -> None:
    """Boot a kernel that hangs: the machine is switched, and given back."""
    kernel = hung(debian_kernel(folder, machine.base.kernel), folder)
    failure, told = boot_that_fails(testbed, machine, kernel, folder)
    assert "came back with its own kernel once it was switched off and on" in failure.message
    testbed.give_back(told)


def test_a_pdu_ends_it_where_the_bmc_is_dead(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine = machine_of("two-stage")
    testbed = open_directly(machine, without=("perfbisect_console",))  # that is the BMC's, too
    machine.bmc.kill()
    assert_switched_off_and_on(testbed, machine, tmp_path)
    machine.bmc.start()
    assert not_given_back(machine) == []


def test_a_pdu_ends_it_where_the_bmc_says_so_and_does_nothing(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine = machine_of("two-stage")
    testbed = open_directly(machine, without=("perfbisect_console",))
    assert isinstance(machine.bmc, IpmiBmc)
    machine.bmc.idle(True)
    kernel, told, boot = (
        hung(debian_kernel(tmp_path, machine.base.kernel), tmp_path),
        Told(),
        tmp_path / "boot",
    )
    boot.mkdir()
    # Nothing but silence was seen, and of a machine whose power is in doubt: no commit is blamed.
    with pytest.raises(InfrastructureError, match="was not switched by a stage of its power that said so"):
        testbed.boot(kernel, shell_job(tmp_path, "echo real: 1\n"), boot, told)
    assert any("trying the next stage of its power" in text for text in told)
    assert machine.kernel() == machine.base.kernel
    machine.bmc.idle(False)
    testbed.give_back(told)
    assert not_given_back(machine) == []


def test_a_command_that_only_reboots_ends_it(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine = machine_of("plain")
    assert_switched_off_and_on(open_directly(machine), machine, tmp_path)
    assert not_given_back(machine) == []


@pytest.mark.parametrize(
    ("kind", "driver", "path", "shown"),
    [
        ("ipmi", "i6300esb", "class/watchdog/watchdog0/identity", "i6300ESB timer"),
        ("ipmi-watchdog", "ipmi_watchdog", "module/ipmi_watchdog/parameters/action", "reset"),
    ],
)
def test_a_watchdog_ends_it_where_nothing_else_can(
    kind: str,
    driver: str,
    path: str,
    shown: str,
    machine_of: Callable[[str], Machine],
    open_directly: OpenDirectly,
    tmp_path: Path,
) -> None:
    """The machine's own kernel lacks the driver: one that has it is booted first, and jumps from there."""
    machine = machine_of(kind)
    unswitched = ("perfbisect_power", "perfbisect_console")
    testbed = open_directly(machine, unswitched, perfbisect_between_boots="kexec")
    kernel, told, boot = kernel_with_initramfs(tmp_path, machine.base.kernel), Told(), tmp_path / "first"
    boot.mkdir()
    testbed.boot(kernel, shell_job(tmp_path / "first-job", "echo real: 1\n"), boot, told).leave()
    assert machine.run("cat", f"/sys/{path}").strip() == shown
    failure, told = boot_that_fails(testbed, machine, hung(replace(kernel, modules=None), tmp_path), tmp_path)
    assert any(text.endswith(f"s by {driver}") for text in told), told
    assert "came back by itself with its own kernel" in failure.message
    testbed.give_back(told)
    assert not_given_back(machine) == []
