"""A kernel dies in a run; its last words come over the network, from the kernel itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.errors import BootFailed
from tests.lab.campaign.given_back import not_given_back
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel
from tests.lab.ways_back.direct_testbed import Told, open_directly
from tests.support.servers.free_port import free_port
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

_RUN_SECONDS = 100
"""Longer than the kernel lives. Nobody knows how long a first run takes: its timeout is waited for."""

_HERE = "10.0.2.2"
"""This host, as a machine on QEMU's network sees it."""


def test_a_panic_comes_by_netconsole(machine_of: Callable[[str], Machine], tmp_path: Path) -> None:
    machine, port = machine_of("ipmi"), free_port()
    testbed = open_directly(machine, tmp_path, perfbisect_console={"kind": "netconsole", "port": port})
    kernel, told, boot = debian_kernel(tmp_path, machine.base.kernel), Told(), tmp_path / "boot"
    boot.mkdir()
    job = shell_job(tmp_path, f"sleep {_RUN_SECONDS}; echo real: 1\n", timeout=_RUN_SECONDS + 20)
    session = testbed.boot(kernel, job, boot, told)
    card = machine.run("sh", "-c", "ls /sys/class/net | grep -v lo").strip()
    # Loaded this late, it sends all that the kernel has said since it began.
    machine.run("modprobe", "netconsole", f"netconsole=@10.0.2.15/{card},{port}@{_HERE}/")
    threading.Timer(5.0, lambda: machine.later("echo c > /proc/sysrq-trigger")).start()
    with pytest.raises(BootFailed) as failed:
        session.run(0)
    print(failed.value.message, failed.value.details, sep="\n")
    assert "the kernel died while the workload ran" in failed.value.message
    assert "sysrq triggered crash" in failed.value.message
    console = (boot / "console.log").read_text(errors="replace")
    assert f"Linux version {kernel.release} " in console
    session.leave()
    testbed.give_back(told)
    assert not_given_back(machine) == []
