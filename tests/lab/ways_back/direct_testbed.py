"""A machine of the lab as the testbed that a search uses, in this process: one boot, no search around it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.errors import BootFailed
from bisector.ports import Kernel
from tests.lab.machine import Machine
from tests.support.workload_jobs import shell_job

_LIVED_SECONDS = 5.0
"""How far into a run a kernel is killed."""

_RUN_SECONDS = 100
"""Longer than the kernel lives. Nobody knows how long a first run takes: its timeout is waited for."""


class OpenDirectly(Protocol):
    """Returns the testbed of a machine; the fixture of this name ends it after the test."""

    def __call__(self, machine: Machine, without: tuple[str, ...] = (), **changed: object) -> SSHTestbed:
        """Open it. without: variables of its inventory that are left out; changed: other ones."""


class Told(list[str]):
    """What was told of a boot, printed as it comes: `pytest -s` shows it."""

    def __call__(self, text: str) -> None:
        """Take one more."""
        print(f"    {text}", flush=True)
        self.append(text)


def boot_that_fails(
    testbed: SSHTestbed, machine: Machine, kernel: Kernel, folder: Path
) -> tuple[BootFailed, Told]:
    """Boot the kernel; return how that failed, and what was told. The machine runs its own kernel then."""
    boot, told = folder / "boot", Told()
    boot.mkdir()
    started = time.monotonic()
    with pytest.raises(BootFailed) as failed:
        testbed.boot(kernel, shell_job(folder, "echo real: 1\n"), boot, told)
    print(f"{machine.name}: back after {time.monotonic() - started:.0f} s: {failed.value.message}")
    print(failed.value.details)
    assert machine.kernel() == machine.base.kernel
    return failed.value, told


def death_in_a_run(
    testbed: SSHTestbed,
    machine: Machine,
    kernel: Kernel,
    folder: Path,
    prepare: Callable[[], object] = lambda: None,
) -> tuple[BootFailed, Told]:
    """Boot the kernel, kill it while a workload runs; return how that failed, and what was told of the boot.

    prepare: what is done between the two. The boot's files are below `folder`/boot.
    """
    boot, told = folder / "boot", Told()
    boot.mkdir()
    job = shell_job(folder, f"sleep {_RUN_SECONDS}; echo real: 1\n", timeout=_RUN_SECONDS + 20)
    session = testbed.boot(kernel, job, boot, told)
    try:
        prepare()
        threading.Timer(_LIVED_SECONDS, lambda: machine.later("echo c > /proc/sysrq-trigger")).start()
        with pytest.raises(BootFailed) as failed:
            session.run(0)
    finally:
        session.leave()
    print(failed.value.message, failed.value.details, sep="\n")
    return failed.value, told
