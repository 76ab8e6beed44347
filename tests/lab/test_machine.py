"""The emulated machines themselves: what tests of perfbisect on them rely on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import InfrastructureError
from tests.lab.box import Box
from tests.lab.machine import Machine
from tests.lab.machine_design import DESIGNS
from tests.support.servers.ipmi_config import USER

pytestmark = pytest.mark.slow

GiveMachine = Callable[[str], Machine]


def test_what_is_in_a_box_ends_with_it(tmp_path: Path) -> None:
    with Box() as box:
        command = ["sh", "-c", "setsid sleep 1234.5 & sleep 1234.6"]
        box.start(command, tmp_path / "log")
        deadline = time.monotonic() + 20
        while len(sleepers()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    deadline = time.monotonic() + 20
    while sleepers():
        assert time.monotonic() < deadline, "a process outlived its box"
        time.sleep(0.05)


def sleepers() -> list[str]:
    return subprocess.run(
        ["pgrep", "-f", r"^sleep 1234\.[56]"], capture_output=True, text=True
    ).stdout.split()


def test_a_bmc_switches_the_machine_whatever_it_does(machine_of: GiveMachine) -> None:
    machine = machine_of("ipmi")
    boot = machine.wait_for_ssh()
    assert ipmi(machine, "status") == "Chassis Power is on\n"
    machine.hang()
    with pytest.raises(InfrastructureError):
        machine.run("true")
    ipmi(machine, "cycle")
    boot = machine.wait_for_ssh(other_than=boot)
    ipmi(machine, "off")
    assert (machine.is_on(), ipmi(machine, "status")) == (False, "Chassis Power is off\n")
    ipmi(machine, "on")
    assert machine.wait_for_ssh(other_than=boot)


def test_a_machine_goes_on_without_its_bmc(machine_of: GiveMachine) -> None:
    machine = machine_of("ipmi")
    boot = machine.wait_for_ssh()
    machine.bmc.kill()
    assert machine.wait_for_ssh() == boot
    with pytest.raises(subprocess.CalledProcessError):
        ipmi(machine, "status")
    machine.bmc.start()
    assert ipmi(machine, "status") == "Chassis Power is on\n"


@pytest.mark.parametrize("kind", ["ipmi", *(pytest.param(one, marks=pytest.mark.lab) for one in ("uefi",))])
def test_an_entry_for_once_is_booted_once(machine_of: GiveMachine, kind: str) -> None:
    machine = machine_of(kind)
    boot = machine.wait_for_ssh()
    write = f"""cat > /boot/grub/custom.cfg <<EOF
menuentry 'once' --id once {{
    search --no-floppy --fs-uuid --set=root $(grub-probe --target=fs_uuid /boot)
    linux /boot/vmlinuz-{machine.base.kernel} root={machine.base.root} rw console=ttyS0 panic=10 once=1
}}
EOF
grub-reboot once"""
    machine.run("sh", "-c", write)
    machine.later("reboot")
    boot = machine.wait_for_ssh(other_than=boot)
    assert "once=1" in machine.run("cat", "/proc/cmdline")
    machine.later("echo c > /proc/sysrq-trigger")  # panic=10 brings the default kernel back
    machine.wait_for_ssh(other_than=boot)
    assert "once=1" not in machine.run("cat", "/proc/cmdline")
    assert "Kernel panic - not syncing: sysrq triggered crash" in machine.console()
    left = "find /sys/fs/pstore /var/lib/systemd/pstore -name 'dmesg*' 2>/dev/null; true"
    for on in (True, False):
        if not on:
            machine.power_off()
        machine.put_back()
        assert machine.run("sh", "-c", left) == ""


def test_kexec_starts_a_kernel_with_another_command_line(machine_of: GiveMachine) -> None:
    machine = machine_of("ipmi")
    boot = machine.wait_for_ssh()
    line = f"--command-line=root={machine.base.root} rw console=ttyS0 panic=10 second=1"
    machine.run("kexec", "--load", f"/boot/vmlinuz-{machine.base.kernel}", line)
    machine.later("sync; kexec --exec")
    machine.wait_for_ssh(other_than=boot)
    assert "second=1" in machine.run("cat", "/proc/cmdline")


def test_what_befalls_a_machine_is_taken_back(machine_of: GiveMachine) -> None:
    machine = machine_of("ipmi")
    machine.wait_for_ssh()
    machine.cut_network()
    with pytest.raises(SSHRefused):
        machine.run("true")
    machine.mend_network()
    machine.fill_disk()
    with pytest.raises(InfrastructureError, match="failed with code"):
        machine.run("sh", "-c", "head -c 1000000 /dev/zero > /var/more")
    machine.empty_disk()
    machine.run("sh", "-c", "head -c 1000000 /dev/zero > /var/more && rm /var/more")
    with machine.second_user() as other:
        assert other.run(["cat", "/etc/hostname"]).output == "machine\n"


@pytest.mark.lab
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_machine_of_this_kind_boots_and_says_how_long_it_took(machine_of: GiveMachine, kind: str) -> None:
    machine = machine_of(kind)
    machine.power_off()
    machine.power_on()
    started = time.monotonic()
    machine.wait_for_ssh()
    print(f"{kind}: SSH after {time.monotonic() - started:.1f} s, {machine.cpu_seconds():.1f} s of CPU")
    assert machine.kernel() == machine.base.kernel
    machine.power_off()


def ipmi(machine: Machine, action: str) -> str:
    return subprocess.run(
        [
            *("ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(machine.bmc.port)),
            *("-U", USER, "-f", str(machine.folder / "password"), "-N", "1", "-R", "2"),
            *("chassis", "power", action),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
