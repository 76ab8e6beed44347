"""Where and how a testbed is reached over SSH; shared by Ansible and by the measuring session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
