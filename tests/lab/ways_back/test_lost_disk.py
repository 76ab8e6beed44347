"""A machine whose disk fails for good while it runs: the machine's failure, whatever the kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.errors import InfrastructureError
from tests.lab.machine import Machine
from tests.lab.test_boot_methods import own_kernel
from tests.lab.ways_back.direct_testbed import OpenDirectly, Told
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

_SECONDS = 5.0
"""After the run has begun."""


def test_a_disk_that_fails_in_a_run_is_the_machines_failure(
    machine_of: Callable[[str], Machine], open_directly: OpenDirectly, tmp_path: Path
) -> None:
    machine = machine_of("ipmi")
    testbed = open_directly(machine, perfbisect_between_boots="kexec")
    kernel, told, boot = own_kernel(machine), Told(), tmp_path / "boot"
    boot.mkdir()
    script = "set -e\nfor n in $(seq 30); do echo $n >file$n; sync file$n; sleep 1; done\necho real: 1\n"
    session = testbed.boot(kernel, shell_job(tmp_path, script, timeout=120), boot, told)
    try:
        threading.Timer(_SECONDS, machine.lose_disk).start()
        with pytest.raises(InfrastructureError) as failed:
            session.run(0)
    finally:
        session.leave()
    print(failed.value.message, failed.value.details, failed.value.cure, sep="\n")
    assert "the machine does not come back" in failed.value.message
    assert "Input/output error" in failed.value.details
    assert "nothing was held against the commit" in failed.value.cure
