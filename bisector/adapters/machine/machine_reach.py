"""Whether a machine answers over SSH, and from which boot.

Timeouts follow the machine: an emulated one needs twenty times as long for a key exchange as a server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.channel import LineClosed
from bisector.adapters.system.ssh import SSH, SSHRefused
from bisector.adapters.system.ssh_endpoint import SSHHost, libvirt_host
from bisector.errors import RequestError
from bisector.linux.boot_remarks import KERNEL_PARAMETER
from bisector.schemas.lab import BuilderSpec, TestbedSpec

_CONNECT_SECONDS = 5.0
"""Timeout of the first packets of a connection; their kernel answers them at once, or nobody does."""

_PROBE_SHARE = 6.0
_LEAST_PROBE_SECONDS = 10.0
"""Timeout of the key exchange, the login and a short command: a sixth of the boot timeout, 30 s of the usual
180 s, and not less than this. A machine that boots for longer computes for longer."""

_ASK = ["cat", "/proc/sys/kernel/random/boot_id", "/proc/cmdline"]
_OURS = re.compile(rf"\b{re.escape(KERNEL_PARAMETER)}=(\S+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """Who answers: the id of the boot; ours: the key of the kernel under test, '' for another kernel."""

    boot_id: str
    ours: str


class MachineReach:
    """Short commands on a machine, each over a connection of its own: between two the machine may reboot."""

    def __init__(self, host: SSHHost, boot_timeout: float) -> None:
        """boot_timeout: of the machine, seconds."""
        self.host = host
        self.probe_seconds = max(_LEAST_PROBE_SECONDS, boot_timeout / _PROBE_SHARE)

    def ask(self) -> Answer:
        """Return who answers. Raises SSHRefused when there is no answer."""
        try:
            boot_id, _, cmdline = self.run(_ASK).partition("\n")
        except LineClosed as error:  # it went down while it answered
            raise SSHRefused(error.message, details=error.details) from error
        found = _OURS.search(cmdline)
        return Answer(boot_id.strip(), found[1] if found else "")

    def run(self, command: Sequence[str], *, timeout: float | None = None, check: bool = True) -> str:
        """Run a command there; return what it printed. Raises SSHRefused or another InfrastructureError.

        timeout: of the command, by default that of a short one; check: raise for an exit code other than 0.
        """
        with SSH(self.host, timeout=_CONNECT_SECONDS, login_timeout=self.probe_seconds) as ssh:
            return ssh.run(command, timeout=timeout or self.probe_seconds, check=check).output


def ssh_host(spec: TestbedSpec | BuilderSpec) -> SSHHost:
    """Return how a machine of the inventory is reached: for guests elsewhere, their host.

    Raises RequestError if it says no key.
    """
    if isinstance(spec, TestbedSpec) and (host := libvirt_host(spec)) is not None:
        return host
    way = spec.connection
    kind, known_hosts = "builder", way.known_hosts or Path("~/.ssh/known_hosts")  # as Ansible has it
    if isinstance(spec, TestbedSpec):
        kind, known_hosts = "testbed", Path(spec.variables.known_hosts)
    if way.key is None:
        raise RequestError(
            f"the {kind} '{spec.name}' has no SSH key",
            cure="set the host variable ansible_ssh_private_key_file in the inventory",
        )
    return SSHHost(way.address, way.port, way.user, way.key, known_hosts.expanduser())
