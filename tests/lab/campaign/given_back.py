"""Whether a machine was given back: looked at from its own side and its BMC's; nobody asks perfbisect."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bisector.errors import PerfbisectError
from tests.lab.ipmi_bmc import IpmiBmc
from tests.lab.machine import Machine
from tests.support.servers.ipmi_config import USER

_OURS = "/boot/*perfbisect* /var/lib/perfbisect /var/tmp/perfbisect /run/perfbisect-agent.lock"
"""Kernels and marks, the workload; the lock goes with the boot that had it."""

_ESTABLISHED = "01"


def not_given_back(machine: Machine) -> list[str]:
    """Return what shows that it runs another kernel than its own, has something of ours, or is heard."""
    try:
        machine.wait_for_ssh(timeout=machine.boot_timeout)
        kernel = machine.kernel()
        left = machine.run("sh", "-c", f"ls -d {_OURS} /lib/modules/*/.perfbisect 2>/dev/null; true")
    except (PerfbisectError, TimeoutError) as error:
        return [f"{machine.name} is not back: {error}"]
    wrong = [] if kernel == machine.base.kernel else [f"{machine.name} runs {kernel}"]
    wrong += [f"left on {machine.name}: {left.split()}"] if left.strip() else []
    return wrong + console_listeners(machine)


def console_listeners(machine: Machine) -> list[str]:
    """Return what shows that a session of its console is still open; one over the LAN is ended by asking."""
    if machine.design.console == "tcp":
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        port = f":{machine.serial_port:04X}"
        open_ = [row for row in rows if row[2].endswith(port) and row[3] == _ESTABLISHED]
        return [f"{len(open_)} connections to the console of {machine.name} are open"] if open_ else []
    if machine.design.console != "sol" or not isinstance(machine.bmc, IpmiBmc):
        return []
    asked = subprocess.run(
        [
            *("ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(machine.bmc.port)),
            *("-U", USER, "-f", str(machine.folder / "password"), "-v", "sol", "deactivate"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "already de-activated" in asked.stderr:
        return []
    return [f"a session of the console of {machine.name} was open: {asked.stderr[-300:]}"]
