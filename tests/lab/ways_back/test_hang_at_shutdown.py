"""A kernel that runs well and hangs when it is to shut down: nothing of that is held against the next one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.campaign.given_back import not_given_back
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import debian_kernel, own_kernel
from tests.lab.ways_back.direct_testbed import OpenDirectly, Told
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

_STOP = "/etc/lab/stop"
"""What init runs first when the machine is to go down; it is waited for."""


@pytest.mark.parametrize("kind", ["ipmi", "deaf"])
def test_the_next_kernel_is_booted_and_its_commit_not_blamed(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path, kind: str
) -> None:
    machine, told = machine_of(kind), Told()
    hanging, sound = debian_kernel(tmp_path, machine.base.kernel), own_kernel(machine)
    testbed = open_directly(machine)
    hangs = f"[ $(uname -r) != {hanging.release} ] || {{ ip link set eth0 down; sleep 9999; }}"
    machine.run("sh", "-c", f"cp {_STOP} {_STOP}.kept; echo '{hangs}' >>{_STOP}; sync")
    for number, kernel in enumerate((hanging, sound)):
        boot = tmp_path / f"boot{number}"
        boot.mkdir()
        session = testbed.boot(kernel, shell_job(boot / "job", "echo real: 1\n"), boot, told)
        assert session.run(0).values["real"] == 1.0
        assert session.facts.release == kernel.release
        session.leave()
    testbed.give_back(told)
    machine.run("mv", f"{_STOP}.kept", _STOP)
    assert not_given_back(machine) == []
