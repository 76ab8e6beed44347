"""A kernel dies in a run, and nobody hears its console: what it left in the firmware's memory says why."""

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
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

_RUN_SECONDS = 100
"""Longer than the kernel lives. Nobody knows how long a first run takes: its timeout is waited for."""


def test_a_panic_that_nobody_heard_is_read_from_memory(
    machine_of: Callable[[str], Machine], tmp_path: Path
) -> None:
    machine = machine_of("uefi")
    testbed = open_directly(machine, tmp_path, without=("perfbisect_console",))
    kernel, told, boot = debian_kernel(tmp_path, machine.base.kernel), Told(), tmp_path / "boot"
    boot.mkdir()
    job = shell_job(tmp_path, f"sleep {_RUN_SECONDS}; echo real: 1\n", timeout=_RUN_SECONDS + 20)
    session = testbed.boot(kernel, job, boot, told)
    threading.Timer(5.0, lambda: machine.later("echo c > /proc/sysrq-trigger")).start()
    with pytest.raises(BootFailed) as failed:
        session.run(0)
    print(failed.value.message, failed.value.details, sep="\n")
    assert "sysrq triggered crash" in failed.value.message
    assert "left in memory by the kernel that died (pstore):" in failed.value.details
    session.leave()
    testbed.give_back(told)
    assert not_given_back(machine) == []
    assert machine.run("ls", "/sys/fs/pstore").strip() == "", "its memory is small: what was read is removed"
