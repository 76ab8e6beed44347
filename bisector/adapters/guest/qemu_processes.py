"""The QEMU processes of guests, found in /proc: they may outlive libvirtd, or be unknown to it."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_KILL_SECONDS = 5.0
"""Until a killed process is gone: its memory is freed in less than a second, on a loaded host."""


def qemu_pids(prefix: str) -> list[int]:
    """Return the ids of QEMU processes that run domains with this name or prefix of names."""
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
    return any(Path(arguments[0].decode(errors="replace")).name == name for _, arguments in command_lines())


def command_lines() -> Iterator[tuple[int, list[bytes]]]:
    """Yield (process id, arguments) of all processes; kernel threads and zombies have no arguments."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # gone meanwhile
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                if arguments[0]:
                    yield int(entry.name), arguments


def kill(pid: int) -> None:
    """Kill a process and wait until it is gone or a zombie, for `_KILL_SECONDS` at most."""
    deadline = time.monotonic() + _KILL_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/cmdline").exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if not Path(f"/proc/{pid}/cmdline").read_bytes():  # a zombie, until its parent looks
                return
        time.sleep(0.02)
