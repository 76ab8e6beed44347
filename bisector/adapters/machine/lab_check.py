"""Checks of the machines of a lab: they answer, and have what a trial needs. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bisector.adapters.agent.scratch_disk import check_device
from bisector.adapters.machine.machine_reach import ssh_host
from bisector.adapters.system.host_requirements import checks
from bisector.adapters.system.ssh import SSH
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError
from bisector.schemas.lab import BuilderSpec, Lab, TestbedSpec

_TOOLS = ("sh", "tar", "mkdir")
"""The programs that unpack and start a workload on a testbed."""


def lab_checks(lab: Lab, cache: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return (machine, check); a check returns if the machine is usable and raises what is wrong with it."""
    for testbed in lab.testbeds:
        yield f"testbed {testbed.name}", partial(_testbed, testbed, cache)
    for builder in lab.builders:
        yield f"builder {builder.name}", partial(_builder, builder, cache)


def _testbed(testbed: TestbedSpec, cache: Path) -> None:
    match testbed.variables.kind:
        case "libvirt":
            _check_this_machine("guests", cache)
        case "ssh":
            _check_over_ssh(ssh_host(testbed), _TOOLS)
            path = testbed.variables.block_device
            if path:
                with SSH(ssh_host(testbed)) as ssh:
                    check_device(path, 0, testbed.name, lambda command: ssh.run(command).output)
        case "local":
            pass


def _builder(builder: BuilderSpec, cache: Path) -> None:
    if builder.connection.local:
        _check_this_machine("building kernels", cache)
    else:
        _check_over_ssh(ssh_host(builder), ("make", "gcc", "flex", "bison", "ccache", "python3"))


def _check_this_machine(needed: str, cache: Path) -> None:
    wrong = [c for c in checks(cache) if c.needed == needed and not c.ok]
    if wrong:
        raise InfrastructureError(
            "; ".join(f"{c.name}: {c.wrong}" for c in wrong), cure="; ".join(c.cure for c in wrong)
        )


def _check_over_ssh(host: SSHHost, tools: tuple[str, ...]) -> None:
    with SSH(host) as ssh:
        missing = [t for t in tools if ssh.run(["sh", "-c", f"command -v {t}"], check=False).code != 0]
    if missing:
        raise InfrastructureError(
            f"{host} lacks {', '.join(missing)}", cure=f"install them on {host.address}"
        )
