"""The QEMU processes of guests, found in /proc: they may outlive libvirtd, or be unknown to it."""

from __future__ import annotations

import itertools
from pathlib import Path

from bisector.adapters.system.files import os_errors_reported
from bisector.adapters.system.processes import command_lines


def qemu_pids(prefix: str) -> list[int]:
    """Return the ids of QEMU processes that run domains with this name or prefix of names.

    Raises InfrastructureError where that cannot be known: a guest that is not seen is not therefore gone.
    """
    with os_errors_reported("cannot look for the processes of guests"):
        return [
            pid
            for pid, arguments in command_lines()
            if b"qemu" in arguments[0] and _guest_name(arguments).startswith(prefix)
        ]


def _guest_name(arguments: list[bytes]) -> str:
    """Return NAME of libvirt's `-name guest=NAME,debug-threads=on`."""
    for word, value in itertools.pairwise(arguments):
        if word == b"-name" and value.startswith(b"guest="):
            return value.removeprefix(b"guest=").split(b",")[0].decode(errors="replace")
    return ""


def is_running(name: str) -> bool:
    """Return whether a program of this name runs, in whatever folder it is."""
    with os_errors_reported(f"cannot look for {name} among the processes"):
        return any(Path(words[0].decode(errors="replace")).name == name for _, words in command_lines())
