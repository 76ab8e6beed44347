"""A kernel dies in a run, and nobody hears its console: what it left in the firmware's memory says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.campaign.given_back import not_given_back
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel
from tests.lab.ways_back.direct_testbed import OpenDirectly, death_in_a_run

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_panic_that_nobody_heard_is_read_from_memory(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine = machine_of("uefi")
    testbed = open_directly(machine, without=("perfbisect_console",))
    kernel = debian_kernel(tmp_path, machine.base.kernel)
    failure, told = death_in_a_run(testbed, machine, kernel, tmp_path)
    assert "sysrq triggered crash" in failure.message
    assert "left in memory by the kernel that died (pstore):" in failure.details
    testbed.give_back(told)
    assert not_given_back(machine) == []
    assert machine.run("ls", "/sys/fs/pstore").strip() == "", "its memory is small: what was read is removed"
