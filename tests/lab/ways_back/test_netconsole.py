"""A kernel dies in a run; its last words come over the network, from the kernel itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.campaign.given_back import not_given_back
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel
from tests.lab.ways_back.direct_testbed import OpenDirectly, death_in_a_run
from tests.support.servers.free_port import free_port

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

_HERE = "10.0.2.2"
"""This host, as a machine on QEMU's network sees it."""


def test_a_panic_comes_by_netconsole(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine, port = machine_of("ipmi"), free_port()
    testbed = open_directly(machine, perfbisect_console={"kind": "netconsole", "port": port})
    kernel = debian_kernel(tmp_path, machine.base.kernel)

    def send_by_netconsole() -> None:
        """Loaded this late, it sends all that the kernel has said since it began."""
        card = machine.run("sh", "-c", "ls /sys/class/net | grep -v lo").strip()
        machine.run("modprobe", "netconsole", f"netconsole=@10.0.2.15/{card},{port}@{_HERE}/")

    failure, told = death_in_a_run(testbed, machine, kernel, tmp_path, send_by_netconsole)
    assert "the kernel died while the workload ran" in failure.message
    assert "sysrq triggered crash" in failure.message
    console = (tmp_path / "boot" / "console.log").read_text(errors="replace")
    assert f"Linux version {kernel.release} " in console
    testbed.give_back(told)
    assert not_given_back(machine) == []
