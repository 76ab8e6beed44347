"""Whether a guest is alive, seen from outside: its console, its QEMU process, its forwarded or serial port.

It tells apart a kernel that failed (BootFailed) and a guest that was taken away (TestbedLost).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.guest.libvirt_connection import Domain
from bisector.adapters.system.channel import Line, LineClosed, LineFlood, LineSilent
from bisector.adapters.system.console_log import ConsoleLog
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import BootFailed, Interrupted, PerfbisectError, TestbedLost
from bisector.linux.console_text import ENDED_ITSELF, Stage, clean, death, stage, tail

LOOPBACK = "127.0.0.1"

_POLL_SECONDS = 0.03
"""Polling interval of the console: a boot takes up to this much longer."""

_LINE_SECONDS = 1.0
"""How long to wait for the rest of the line that says how a kernel died, which the console may just be
receiving. A guest that ended in the middle of it never completes it."""

_PROBE_SECONDS = 1.0
"""Interval of the checks that QEMU still runs: each reads all of /proc."""

_BANNER_SECONDS = 10.0
"""Timeout of sshd's first line after a connection. In an emulated guest its fork takes 0.1 s."""

_CONSOLE_BYTES = 1 << 18
"""The end of the console that is read: more than a boot and many WARNs print."""


@dataclass(slots=True)
class Liveness:
    """The console of a guest, and whether its QEMU runs.

    always_busy: it uses a CPU of this host even when idle, as all guests on the instruction clock do.
    console_ended: tells why the console's file grows no more though the guest runs, None while it may.
    stop: whether its boot is to be given up: a guest is ended at any moment, so nobody waits for that.
    """

    console: Path
    domain: Domain
    always_busy: bool = False
    console_ended: Callable[[], str | None] = lambda: None
    stop: Callable[[], bool] = lambda: False
    _next_probe: float = 0.0

    def console_text(self) -> str:
        """Return the end of the console, cleaned; where the kernel died, wait for the whole line about it."""
        deadline = time.monotonic() + _LINE_SECONDS
        while True:
            text = clean(ConsoleLog(self.console).end(_CONSOLE_BYTES))
            if text.endswith("\n") or death(text) is None or time.monotonic() >= deadline:
                return text
            time.sleep(_POLL_SECONDS)

    def crashed(self) -> str | None:
        """Return how the kernel died with the end of its console, or None."""
        text = self.console_text()
        died = death(text)
        return None if died is None else f"{died}\n{tail(text)}"

    def lost(self) -> PerfbisectError | None:
        """Return why the guest is gone or paused, None while it runs or where its console shows that the
        kernel died.

        Checked once a second: None between.
        """
        if time.monotonic() < self._next_probe:
            return None
        self._next_probe = time.monotonic() + _PROBE_SECONDS
        end, unheard = self.domain.ended(), self.console_ended()
        paused = self.paused() if end is None else None
        if (end is None and unheard is None and paused is None) or self.crashed() is not None:
            return None
        if paused is not None:
            return paused
        if end is None:
            message = "the guest's console was lost while it booted: the connection to its host ended"
            return TestbedLost(message, details=unheard or "")
        if end == "shutdown":  # a triple fault resets the machine without a message
            return BootFailed("the kernel reset the guest without a word", details=tail(self.console_text()))
        causes = {
            "destroyed": "was destroyed from outside",
            "crashed": "its QEMU was killed",
            "failed": "its QEMU died",
            "lost": "its QEMU is gone",
        }
        message = f"the guest was lost while it booted: {causes[end]}"
        return TestbedLost(message, details=tail(self.console_text()))

    def paused(self) -> TestbedLost | None:
        """Return the error if something other than its kernel has stopped the guest; None while it runs."""
        why = self.domain.paused()
        if why is None:
            return None
        return TestbedLost(
            f"the guest was paused from outside ({why})",
            details=tail(self.console_text()),
            cure="after an I/O error make room on its host's disk; after 'user' ask who suspended it",
        )

    def cpu_time(self) -> float | None:
        """Return the guest's CPU seconds, None where an idle guest uses none. See `CpuTime`."""
        return self.domain.cpu_seconds() if self.always_busy else None


def wait_for_ssh(liveness: Liveness, port: int, deadline: CpuDeadline) -> None:
    """Return when sshd in the guest answers.

    Raises BootFailed (the kernel), TestbedLost (not it) or Interrupted (told to stop).
    """
    while not (stage(liveness.console_text()) == "ready" and _banner(port)):
        _raise_failure(liveness, deadline, _SSH_STAGES)
        time.sleep(_POLL_SECONDS)


def wait_for_agent(liveness: Liveness, line: Line, deadline: CpuDeadline) -> str:
    """Return the first line that the guest sends over its second serial port. Raises as `wait_for_ssh`."""
    while True:
        try:
            text = line.receive(_POLL_SECONDS)
            if text.strip():
                return text
            _raise_failure(liveness, deadline, _SERIAL_STAGES)
        except LineSilent:
            _raise_failure(liveness, deadline, _SERIAL_STAGES)
        except LineFlood as error:
            raise TestbedLost(error.message, details=error.details) from error
        except LineClosed:  # QEMU has ended; the cause is known once libvirt has noticed
            _raise_failure(liveness, deadline, _SERIAL_STAGES)
            time.sleep(_POLL_SECONDS)


_SSH_STAGES: Mapping[Stage, str] = {
    "silent": "it never said a word",
    "kernel": "it hangs before its first process speaks",
    "init": "its first process runs, but sshd never listens",
    "ready": "sshd listens, but cannot be reached over the network",
    "not-ready": "sshd cannot run on it",
}
_SERIAL_STAGES: Mapping[Stage, str] = {
    **_SSH_STAGES,
    "init": "its first process runs, but the serial port hangs",
    "ready": "its first process runs, but the measuring agent never speaks",
    "not-ready": "the measuring agent cannot run on it",
}
"""What the error says about a boot that got no farther than this stage."""


def _raise_failure(liveness: Liveness, deadline: CpuDeadline, stages: Mapping[Stage, str]) -> None:
    """Raise BootFailed or TestbedLost if the boot has failed, Interrupted when told to stop; else return."""
    if liveness.stop():
        raise Interrupted("stopped while a guest booted")
    text = liveness.console_text()
    reached = stage(text)
    died = death(text)
    if reached == "not-ready" and (died is None or died.startswith(ENDED_ITSELF)):  # as init does then
        raise BootFailed(f"the kernel boots, but {stages[reached]}", details=tail(text))
    if died is not None:
        raise BootFailed(f"the kernel died while it booted: {died}", details=tail(text))
    lost = liveness.lost()
    if lost is not None:
        raise lost
    if deadline.expired():
        raise BootFailed(
            f"the kernel did not boot within {deadline.timeout:.0f} s: {stages[reached]}",
            details=tail(text),
            cure="if this machine is just slow, raise the host variable perfbisect_boot_timeout",
        )


def _banner(port: int) -> bool:
    """Return whether an SSH server greets at the forwarded port; QEMU accepts connections long before."""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), _BANNER_SECONDS) as client:
        client.settimeout(_BANNER_SECONDS)
        return client.recv(64).startswith(b"SSH-")
    return False


def new_console(folder: Path) -> Path:
    """Return the path of this boot's console; that of an earlier try in the same folder is renamed."""
    console = folder / "console.log"
    log = ConsoleLog(console)
    with os_errors_reported(f"cannot write below {folder}"):
        if console.exists():
            log.join()  # of a process that was killed
            number = 1 + sum(1 for _ in folder.glob("console.*.log"))
            console.rename(folder / f"console.{number}.log")
        log.begin()
    return console
