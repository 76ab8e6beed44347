"""What a boot request costs beside one command over SSH: `python -m tests.bench.boot_request [TIMES]`.

On an emulated machine whose kexec does nothing, so that it stays up: the question which kernel runs, the play
that sends a kernel, and the play where it is there already. CPU seconds are of this host without the machine.
"""

from __future__ import annotations

import resource as system
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.boot.boot_request import PlayedBoot
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.ports import Job, Kernel, MetricSpec
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory
from tests.lab.machine import BOOT_SECONDS
from tests.lab.machines import Machines


def measured(action: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time of this process's children and of itself."""
    spent = [system.getrusage(who) for who in (system.RUSAGE_SELF, system.RUSAGE_CHILDREN)]
    started = time.monotonic()
    action()
    wall = time.monotonic() - started
    now = [system.getrusage(who) for who in (system.RUSAGE_SELF, system.RUSAGE_CHILDREN)]
    cpu = sum(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in zip(spent, now, strict=True))
    return wall, cpu


def main() -> None:
    """Print a row for each part: wall time, CPU time, and how often a bare command fits in."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name, Machines({"box": "ipmi"}) as lab:
        folder, machine = Path(name), lab.machines[0]
        lab.start()
        machine.wait_for_ssh()
        machine.run("ln", "-sfn", "/bin/true", "/usr/sbin/kexec")
        own = machine.host_variables() | {"perfbisect_between_boots": "kexec"}
        listing = {"_meta": {"hostvars": {"box": own}}, "testbeds": {"hosts": ["box"]}}
        spec = lab_from_inventory(listing, folder / "lab.yml").testbed("box")
        reach = MachineReach(machine.ssh_host, BOOT_SECONDS)
        method = PlayedBoot(spec, Ansible(resource("playbooks"), folder / "lab.yml"), reach)
        job = Job("toy", folder, ("toy",), (MetricSpec("real", "s"),))
        image = folder / "image"

        def request() -> None:
            kernel = Kernel("a", "x", "a", image, image, image, "6.1", "", 1.0, False)
            method.request_boot(kernel, job, folder / "boot", lambda _: None)

        def request_another() -> None:
            image.write_bytes(machine.base.disk.read_bytes()[: 12 << 20] + str(time.monotonic()).encode())
            request()

        parts: dict[str, Callable[[], object]] = {
            "a command over SSH": lambda: reach.run(["true"]),
            "which kernel runs": method.running,
            "a kernel of 12 MiB is sent": request_another,
            "it is there already": request,
        }
        rows: dict[str, list[tuple[float, float]]] = {part: [] for part in parts}
        for _ in range(times):
            for part, action in parts.items():
                rows[part].append(measured(action))
        bare = statistics.median(wall for wall, _ in rows["a command over SSH"])
        for part, figures in rows.items():
            wall, cpu = (statistics.median(column) for column in zip(*figures, strict=True))
            print(f"{part:28} {wall:6.2f} s {cpu:6.2f} s of CPU {wall / bare:6.1f} times the command")


if __name__ == "__main__":
    main()
