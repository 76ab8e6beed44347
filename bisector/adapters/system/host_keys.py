"""Host keys of SSH servers: fetched to be shown to a person, and pinned once that person has agreed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import socket
from dataclasses import dataclass
from pathlib import Path

import paramiko

from bisector.adapters.system.files import os_errors_reported
from bisector.adapters.system.ssh import SSHRefused

_SECONDS = 15.0
"""Timeout of connecting and of the key exchange; emulated machines take most of it."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A server's key, as known_hosts has it. name: the host's there; fingerprint: as `ssh-keygen -l` says."""

    name: str
    kind: str
    text: str
    fingerprint: str


def fetch_host_key(address: str, port: int) -> HostKey:
    """Return the key that a server shows to whoever asks. It proves nothing yet. Raises SSHRefused."""
    try:
        with contextlib.closing(socket.create_connection((address, port), _SECONDS)) as connection:
            transport = paramiko.Transport(connection)
            try:
                transport.start_client(timeout=_SECONDS)
                key = transport.get_remote_server_key()
            finally:
                transport.close()
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise SSHRefused(
            f"{address}, port {port}, shows no host key",
            details=str(error),
            cure="switch the machine on, and look at its address, port and firewall",
        ) from error
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return HostKey(_name(address, port), key.get_name(), key.get_base64(), f"SHA256:{digest}")


def is_pinned(file: Path, address: str, port: int) -> bool:
    """Return whether a file of known hosts has any key of a server."""
    if not file.is_file():
        return False
    known = paramiko.HostKeys()
    with contextlib.suppress(OSError, paramiko.SSHException):
        known.load(str(file))
    return bool(known.lookup(_name(address, port)))


def pin_host_key(file: Path, key: HostKey) -> None:
    """Add a key to a file of known hosts. Raises InfrastructureError."""
    with os_errors_reported(f"cannot write {file}"):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        with file.open("a", encoding="utf-8") as out:
            end = "" if before.endswith("\n") or not before else "\n"
            out.write(f"{end}{key.name} {key.kind} {key.text}\n")


def _name(address: str, port: int) -> str:
    return address if port == 22 else f"[{address}]:{port}"
