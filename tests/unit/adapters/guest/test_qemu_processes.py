"""Guests' processes, found by the name that libvirt gives them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bisector.adapters.guest.qemu_processes import is_running, qemu_pids
from bisector.adapters.system import processes
from bisector.errors import InfrastructureError

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a process that sleeps under a command line of choice."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*words: str) -> subprocess.Popen[bytes]:
        # The interpreter takes its program from standard input, so the command line is free.
        process = subprocess.Popen(
            [words[0], "-", *words[1:]], executable=sys.executable, stdin=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(b"import time; time.sleep(60)")
        process.stdin.close()
        started.append(process)
        deadline = time.monotonic() + 20  # within execve the command line reads as empty for a moment
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.01)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def test_guests_are_found_by_the_beginning_of_their_names(start: Start) -> None:
    prefix = f"perfbisect-{uuid.uuid4().hex}-"
    one = start("/usr/bin/qemu-system-x86_64", "-name", f"guest={prefix}a,debug-threads=on", "-S")
    two = start("/usr/bin/qemu-system-aarch64", "-name", f"guest={prefix}b")
    start("/usr/bin/other", "-name", f"guest={prefix}c")  # no QEMU
    start("/usr/bin/qemu-system-x86_64", "-append", f"guest={prefix}d")  # not the name
    start("/usr/bin/qemu-system-x86_64", "-name", f"other-{prefix}e")
    assert sorted(qemu_pids(prefix)) == sorted([one.pid, two.pid])
    assert qemu_pids(f"{prefix}b") == [two.pid]
    assert qemu_pids(f"{prefix}z") == []


def test_a_daemon_is_known_by_the_name_of_its_program(start: Start) -> None:
    name = f"d{uuid.uuid4().hex[:12]}"
    assert not is_running(name)
    start(f"/usr/sbin/{name}", "-d")
    assert is_running(name)
    assert not is_running(name[:-1])


def test_a_guest_that_cannot_be_looked_for_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(processes, "read_all", refuse)
    with pytest.raises(InfrastructureError, match="the processes of guests: Too many open files"):
        qemu_pids("perfbisect-")
    with pytest.raises(InfrastructureError, match="cannot look for libvirtd among the processes"):
        is_running("libvirtd")
