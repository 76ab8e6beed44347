"""Guests whose kernel is older than any distribution: driven over a serial port, without SSH.

The job travels in the initramfs, so the guest needs neither network nor disk. The measuring agent is the same
as everywhere; it speaks over the guest's second serial port. Where the guest's clock counts instructions the
agent runs the workload without commands from the host: nothing comes from outside, every boot of a kernel
executes the same instructions, and its n-th run gives the same number each time. The host then decides by
stopping and resuming the whole guest when the next run happens (see `FreeRunningLine`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bisector.adapters.agent.answers import parse_facts
from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.agent.deploy import boot_facts, verify_kernel
from bisector.adapters.agent.session import AgentSession, await_greeting
from bisector.adapters.build.bzimage import identity
from bisector.adapters.guest.channel_fifo import FifoLine
from bisector.adapters.guest.liveness import Liveness, wait_for_agent
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import Line, LineClosed
from bisector.adapters.system.console_log import ConsoleLog
from bisector.errors import BootFailed, InfrastructureError
from bisector.ports import Job, Kernel

log = logging.getLogger(__name__)

_MAX_KERNEL_LINES = 64
"""Most kernel lines of a run: KERNEL_LINES_MAX of the agent, for kernels with /dev/kmsg."""


class Pausable(Protocol):
    """A guest whose CPUs and clock can be stopped (libvirt_connection.Domain)."""

    def suspend(self) -> None:
        """Stop it. Raises InfrastructureError."""
        ...

    def resume(self) -> None:
        """Let it run on. Raises InfrastructureError."""
        ...


def open_session(
    kernel: Kernel,
    job: Job,
    folder: Path,
    fifos: FifoLine,
    liveness: Liveness,
    *,
    timeout: float,
    started: float,
    ticks_per_second: float | None,
) -> AgentSession:
    """Wait for the booting guest's facts, prove that this kernel runs, and return the session.

    started: of the boot, by `awake_seconds`; timeout: seconds from then until the agent must speak.
    ticks_per_second: as in `AgentSession`; a guest that has it runs unasked, one that has not is asked.
    Raises BootFailed (the kernel), TestbedLost, InfrastructureError; the caller ends the guest then.
    """
    try:
        facts = agent_facts(wait_for_agent(liveness, fifos, CpuDeadline(timeout, liveness.cpu_time, started)))
        _verify_image(kernel, facts)
        booted = awake_seconds()
        line: Line = fifos
        if ticks_per_second is not None:
            line = FreeRunningLine(fifos, liveness.domain)
            job = replace(job, settle=0.0, pause=0.0)  # the agent rests by itself
        await_greeting(line)
    except InfrastructureError as error:
        death = liveness.crashed()
        if death is not None:
            raise BootFailed("the kernel died before it could run the workload", details=death) from error
        raise
    return AgentSession(
        facts=boot_facts(facts, booted - started, awake_seconds() - booted, liveness.console),
        job=job,
        line=line,
        folder=folder,
        crashed=liveness.crashed,
        on_leave=lambda: None,
        cpu_time=liveness.cpu_time,
        paused=liveness.paused,
        new_messages=ConsoleMessages(liveness.console).read_new,
        ticks_per_second=ticks_per_second,
        wall=ticks_per_second is None,
        unasked=ticks_per_second is not None,
    )


def agent_facts(text: str) -> dict[str, str]:
    """Return the facts, which the agent prints first.

    Raises BootFailed for another text: the same programs print facts under other kernels, and some kernels
    take the agent's port for their console. Raises AnswerError for facts that are garbled.
    """
    try:
        return parse_facts(text)
    except InfrastructureError as error:
        if text.lstrip().startswith("{"):
            raise
        raise BootFailed(
            "the kernel boots, but something else than the measuring agent speaks on its second serial port",
            details=error.details,
        ) from error


def _verify_image(kernel: Kernel, facts: dict[str, str]) -> None:
    """Raise InfrastructureError unless this very image runs.

    Kernels before 2.6.23 show no build id; what every image says is its release and its version, which names
    the time of the build or what stands for it.
    """
    own = identity(kernel.image)
    if own is not None:
        if facts.get("uname.version", "") != own.version:
            raise InfrastructureError(
                "the testbed runs another kernel than the one under test",
                details=f"uname -v: expected {own.version}, found {facts.get('uname.version', 'nothing')}",
            )
        kernel = replace(kernel, release=kernel.release or own.release)
    verify_kernel(kernel, facts)


@dataclass(slots=True)
class FreeRunningLine:
    """A line to an agent that runs by itself: 'run' lets the guest go on, its answer stops the guest.

    Stopping comes a moment after the answer, when the next run has begun: the guest's clock stands still
    meanwhile, and nothing in the guest can tell. What else is sent ('kill') does go to the agent. A monitor
    is asked for in the middle of a run, whose answer means nothing; from then on no run is like that of
    another boot, and the guest is not stopped any more.
    """

    inner: Line
    guest: Pausable
    _stopped: bool = False
    _observing: bool = False

    def send(self, text: str) -> None:
        """Let the guest run for 'run'; give anything else to the agent."""
        if text == "quit":
            return  # the guest is about to be ended, and nobody would read the answers to come
        if self._stopped:
            try:
                self.guest.resume()
            except InfrastructureError as error:
                raise LineClosed("the stopped guest cannot be resumed", details=error.details) from error
            self._stopped = False
        self._observing = self._observing or text.startswith("monitor ")
        if text != "run":
            self.inner.send(text)

    def receive(self, timeout: float) -> str:
        """Return the next line, and stop the guest."""
        text = self.inner.receive(timeout)
        if self._observing:
            return text
        try:
            self.guest.suspend()
            self._stopped = True
        except InfrastructureError as error:  # it runs on and its answers wait: that costs host time, no more
            log.warning("%s: %s", error.message, error.details)
        return text

    def close(self) -> None:
        """End the conversation."""
        self.inner.close()


class ConsoleMessages:
    """What the kernel says on the console, for kernels whose log the agent cannot read (/dev/kmsg: 3.5).

    Without it a WARNING in the middle of a run would go unseen.
    """

    def __init__(self, console: Path) -> None:
        """Skip what the console has now."""
        self._console = ConsoleLog(console)
        self.read_new()

    def read_new(self) -> list[str]:
        """Return the lines since the last call, `_MAX_KERNEL_LINES` at most."""
        lines = [line.strip() for line in self._console.read_new().decode(errors="replace").splitlines()]
        return [line for line in lines if line][:_MAX_KERNEL_LINES]
