"""Where and how a testbed is reached over SSH; shared by Ansible and by the measuring session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bisector.errors import RequestError
from bisector.schemas.lab import TestbedSpec

LIBVIRT_SOCKET = "/run/libvirt/libvirt-sock"
"""Of the daemon qemu:///system on a host."""

_SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class SSHHost:
    """One SSH server; its key must be in `known_hosts`, as `address` or (not port 22) `[address]:port`."""

    address: str
    port: int
    user: str
    key: Path
    known_hosts: Path

    def __str__(self) -> str:
        return f"{self.user}@{self.address}:{self.port}"


def libvirt_host(spec: TestbedSpec) -> SSHHost | None:
    """Return how the host of a testbed's guests is reached, None for guests of this machine.

    Raises RequestError where the inventory has no key for it.
    """
    if not spec.variables.libvirt_uri:
        return None
    parts = urlsplit(spec.variables.libvirt_uri)
    if spec.connection.key is None:
        raise RequestError(
            f"the testbed '{spec.name}' has no SSH key for {parts.hostname}",
            cure="set the host variable ansible_ssh_private_key_file in the inventory",
        )
    known_hosts = Path(spec.variables.known_hosts).expanduser()
    where = str(parts.hostname), parts.port or _SSH_PORT, parts.username or "root"
    return SSHHost(*where, spec.connection.key, known_hosts)
