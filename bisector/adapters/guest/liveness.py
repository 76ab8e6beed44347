"""A guest watched from outside while it boots and runs: its console, its QEMU, its forwarded port
or its serial port.

Says which of two very different things happened: the kernel failed, or somebody else took the guest away.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.guest.libvirt_connection import Domain
from bisector.adapters.system.channel import Line, LineClosed, LineSilent
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError, TestbedLost
from bisector.linux.console import ENDED_ITSELF, Stage, clean, death, stage, tail

LOOPBACK = "127.0.0.1"

_POLL_SECONDS = 0.03
"""Between two looks at the console; what a boot can lose by it."""

_PROBE_SECONDS = 1.0
"""Between two looks whether QEMU still runs, which reads all of /proc."""

_BANNER_SECONDS = 10.0
"""For sshd's first line after a connection; emulated, it forks for 0.1 s."""

_CONSOLE_BYTES = 1 << 18
"""More than a boot and many WARNs say; only the end of a longer console is looked at."""


@dataclass(slots=True)
class Liveness:
    """At a guest from outside: its console, and whether its QEMU runs.

    spins: it uses a CPU of this host whatever it does, as all do whose clock counts instructions.
    """

    console: Path
    domain: Domain
    spins: bool = False
    _next_probe: float = 0.0

    def text(self) -> str:
        """Return the console so far (its end)."""
        try:
            with self.console.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _CONSOLE_BYTES))
                return clean(file.read())
        except OSError:
            return ""

    def crashed(self) -> str | None:
        """Return how the kernel died with the end of its console, or None."""
        text = self.text()
        died = death(text)
        return None if died is None else f"{died}\n{tail(text)}"

    def lost(self) -> PerfbisectError | None:
        """Return why the guest is gone although its kernel did not die by its console, or None if it runs."""
        if time.monotonic() < self._next_probe:
            return None
        self._next_probe = time.monotonic() + _PROBE_SECONDS
        end = self.domain.ended()
        if end is None or self.crashed() is not None:
            return None
        if end == "shutdown":  # a triple fault resets the machine, and nothing is left to say so
            return BootFailed("the kernel reset the guest without a word", details=tail(self.text()))
        words = {
            "destroyed": "was destroyed from outside",
            "crashed": "its QEMU was killed",
            "failed": "its QEMU died",
            "lost": "its QEMU is gone",
        }
        return TestbedLost(f"the guest was lost while it booted: {words[end]}", details=tail(self.text()))

    def cpu_time(self) -> float | None:
        """Return the guest's CPU seconds where they are a measure of what it could do. See `CpuTime`."""
        return self.domain.cpu_seconds() if self.spins else None


def wait_for_ssh(liveness: Liveness, port: int, deadline: CpuDeadline) -> None:
    """Return when sshd in the guest answers. Raises BootFailed (the kernel) or TestbedLost (not it)."""
    while not (stage(liveness.text()) == "ready" and _banner(port)):
        _go_on(liveness, deadline, _SSH_WORDS)
        time.sleep(_POLL_SECONDS)


def wait_for_agent(liveness: Liveness, line: Line, deadline: CpuDeadline) -> str:
    """Return the first line that the guest sends over its second serial port. Raises as `wait_for_ssh`."""
    while True:
        try:
            text = line.receive(_POLL_SECONDS)
            if text.strip():
                return text
        except LineSilent:
            _go_on(liveness, deadline, _SERIAL_WORDS)
        except LineClosed:  # QEMU has ended; why, is known when libvirt has noticed as well
            _go_on(liveness, deadline, _SERIAL_WORDS)
            time.sleep(_POLL_SECONDS)


_SSH_WORDS: Mapping[Stage, str] = {
    "silent": "it never said a word",
    "kernel": "it hangs before its first process speaks",
    "init": "its first process runs, but sshd never listens",
    "ready": "sshd listens, but cannot be reached over the network",
    "not-ready": "sshd cannot run on it",
}
_SERIAL_WORDS: Mapping[Stage, str] = {
    **_SSH_WORDS,
    "init": "its first process runs, but the serial port hangs",
    "ready": "its first process runs, but the measuring agent never speaks",
    "not-ready": "the measuring agent cannot run on it",
}
"""How far a boot came that did not get to its end."""


def _go_on(liveness: Liveness, deadline: CpuDeadline, words: Mapping[Stage, str]) -> None:
    """Raise what went wrong; return while nothing has."""
    text = liveness.text()
    reached = stage(text)
    died = death(text)
    if reached == "not-ready" and (died is None or died.startswith(ENDED_ITSELF)):  # as it does then
        raise BootFailed(f"the kernel boots, but {words[reached]}", details=tail(text))
    if died is not None:
        raise BootFailed(f"the kernel died while it booted: {died}", details=tail(text))
    lost = liveness.lost()
    if lost is not None:
        raise lost
    if deadline.expired():
        raise BootFailed(
            f"the kernel did not boot within {deadline.timeout:.0f} s: {words[reached]}",
            details=tail(text),
            cure="if this machine is just slow, raise the host variable perfbisect_boot_timeout",
        )


def _banner(port: int) -> bool:
    """Say whether an SSH server greets at the forwarded port; QEMU itself accepts long before."""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), _BANNER_SECONDS) as client:
        client.settimeout(_BANNER_SECONDS)
        return client.recv(64).startswith(b"SSH-")
    return False


def fresh_console(folder: Path) -> Path:
    """Return the path of this boot's console; one of an earlier try in the same folder is put aside."""
    console = folder / "console.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if console.exists():
            number = 1 + sum(1 for _ in folder.glob("console.log.*"))
            console.rename(folder / f"console.log.{number}")
        console.touch()
    except OSError as error:
        raise InfrastructureError(f"cannot write below {folder}: {error.strerror}") from error
    return console
