"""Whether a machine answers over SSH, and from which boot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.channel import LineClosed
from bisector.adapters.system.ssh import SSH, SSHRefused
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import RequestError
from bisector.schemas.lab import BuilderSpec, TestbedSpec

_PROBE_SECONDS = 5.0
"""Timeout of one attempt to connect; a machine that boots refuses at once or is silent."""


class MachineReach:
    """Short commands on a machine, each over a connection of its own: between two the machine may reboot."""

    def __init__(self, host: SSHHost) -> None:
        self.host = host

    def boot_id(self) -> str:
        """Return the id of the boot that answers. Raises SSHRefused when nobody does."""
        try:
            return self.run(["cat", "/proc/sys/kernel/random/boot_id"], timeout=_PROBE_SECONDS).strip()
        except LineClosed as error:  # it went down while it answered
            raise SSHRefused(error.message, details=error.details) from error

    def run(self, command: Sequence[str], *, timeout: float) -> str:
        """Run a command there; return what it printed. Raises SSHRefused or another InfrastructureError."""
        with SSH(self.host, timeout=_PROBE_SECONDS) as ssh:
            return ssh.run(command, timeout=timeout).output


def ssh_host(spec: TestbedSpec | BuilderSpec) -> SSHHost:
    """Return how a machine of the inventory is reached. Raises RequestError if it says no key."""
    way, known_hosts = spec.connection, "~/.ssh/known_hosts"
    kind = "builder"
    if isinstance(spec, TestbedSpec):
        kind, known_hosts = "testbed", spec.variables.known_hosts
    if way.key is None:
        raise RequestError(
            f"the {kind} '{spec.name}' has no SSH key",
            cure="set the host variable ansible_ssh_private_key_file in the inventory",
        )
    return SSHHost(way.address, way.port, way.user, way.key, Path(known_hosts).expanduser())
