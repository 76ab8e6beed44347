"""What a warm trial costs beside the boot itself: `python -m tests.bench.warm_trial [BOOTS [KIND]]`.

Boots an emulated machine into its own kernel, whose modules are there; the first boot does not count. 'beyond
the boot' is all but the time in which a kernel boots.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.machine_mark import MachineUser
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.linux.boot_remarks import TIMES
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory
from tests.lab.machines import Machines
from tests.lab.test_boot_methods import own_kernel
from tests.support.workload_jobs import shell_job

_PART = re.compile(r"([a-z ]+) ([0-9.]+) s")

_BOOTS = ("answered after", "at its own kernel again in")
"""Parts in which a kernel boots; the rest is ours."""


def main() -> None:
    """Print the median of each part, in seconds and as a ratio to the boot of the kernel under test."""
    boots = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    kind = sys.argv[2] if len(sys.argv) > 2 else "ipmi"
    found: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, Machines({"box": kind}) as lab:
        folder, machine = Path(name), lab.machines[0]
        lab.start()
        machine.wait_for_ssh()
        listing = {"_meta": {"hostvars": {"box": machine.host_variables()}}, "testbeds": {"hosts": ["box"]}}
        spec = lab_from_inventory(listing, folder / "lab.yml").testbed("box")
        ansible = Ansible(resource("playbooks"), folder / "lab.yml")
        testbed = SSHTestbed(spec, ansible, MachineUser("bench", "user=bench host=here"), folder / "state")
        job = shell_job(folder, "echo real: 1\n")
        for number in range(1 + boots):
            boot = folder / f"boot{number}"
            boot.mkdir()
            session = testbed.boot(own_kernel(machine), job, boot, lambda _: None)
            session.leave()
            print(f"boot {number}: {session.facts.facts[TIMES]}", flush=True)
            parts = {
                part.strip(): float(seconds) for part, seconds in _PART.findall(session.facts.facts[TIMES])
            }
            parts["beyond the boot"] = sum(seconds for part, seconds in parts.items() if part not in _BOOTS)
            for part, seconds in parts.items() if number else ():
                found[part].append(seconds)
        testbed.give_back(lambda _: None)
    whole = statistics.median(found["answered after"])
    for part, row in found.items():
        median, most = statistics.median(row), max(row)
        print(f"{part:28} {median:6.1f} s, at most {most:6.1f} s {median / whole:6.2f} times the boot")


if __name__ == "__main__":
    main()
