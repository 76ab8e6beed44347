"""The process of a bisection on real guests: the whole program, watched, and faults that strike in it.

The kernels are those of a short history of Linux (tests/support/small_history), built once. The libvirtd that
is killed is the campaign's own, see `own_machine`.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import scipy.stats  # noqa: F401

from bisector.adapters.agent.session import AgentSession
from bisector.adapters.ansible import runner
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.system import command, processes
from bisector.app import find_culprit
from bisector.app.execution import bisection_services
from bisector.app.wiring import Wiring
from bisector.engine.services import Services
from bisector.ports import BuildOrder, Kernel, Progress, RunResult
from bisector.schemas.request import Accepted
from tests.campaign import hurt_process
from tests.campaign.faults import Fault
from tests.campaign.hurt_process import HurtProcess, WatchedTestbed, replace_all
from tests.campaign.striking import Helper

STOPPED_SECONDS = (0.5, 4.0)
DELAY_SECONDS_MAX = 4.0
"""A boot takes 4 s, a run 1 s."""


class RealProcess(HurtProcess):
    """See `HurtProcess`. The disk that is filled has the state; the cache is the machine's."""

    def __init__(self, folder: Path, variant: int, faults: Sequence[Fault], helper: Helper) -> None:
        super().__init__(folder, variant, faults, helper)
        self._another_kernel = False

    def patch(self) -> None:
        hurt_process.STOPPED_SECONDS = STOPPED_SECONDS
        real_build, real_run, real_stream = KernelBuilder.build, AgentSession.run, command.stream_command
        services = bisection_services.bisection_services
        process = self

        def build(builder: KernelBuilder, order: BuildOrder, progress: Progress) -> Kernel:
            known = builder.cached(order)
            process.cached_image = known.image if known is not None else None
            process.striker.moment("build" if known is None else "cached")
            return real_build(builder, order, progress)

        def run(session: AgentSession, index: int) -> RunResult:
            line = session.line
            send = line.send

            def watched(text: str) -> None:
                send(text)
                if text == "run":
                    process.striker.moment("running")

            session.line = _Watched(line, watched)
            try:
                return real_run(session, index)
            finally:
                session.line = line

        def stream(arguments: Sequence[Any], on_line: Callable[[str], None], **more: Any) -> int:
            first = True

            def heard(text: str) -> None:
                nonlocal first
                if first:
                    first = False
                    process.striker.moment("playing")
                on_line(text)

            return real_stream(arguments, heard, **more)

        def watched_services(wiring: Wiring, accepted: Accepted, stop: Any) -> Services:
            made = services(wiring, accepted, stop)
            testbeds = {
                name: WatchedTestbed(testbed, process.striker, process._kernel)
                for name, testbed in made.testbeds.items()
            }
            return replace(made, testbeds=testbeds, clock=process.clock)

        replace_all(
            (
                (KernelBuilder, "build", build),
                (AgentSession, "run", run),
                (runner, "stream_command", stream),
                (find_culprit, "bisection_services", watched_services),
            )
        )

    def kill_libvirtd(self, fault: Fault) -> None:
        for pid, arguments in list(processes.command_lines()):
            if Path(arguments[0].decode()).name == "libvirtd":
                os.kill(pid, signal.SIGKILL)

    def cut(self, fault: Fault) -> None:
        """Shut down this process's TCP connections: all lead to the guest."""
        for entry in Path("/proc/self/fd").iterdir():
            try:
                if os.readlink(entry).startswith("socket:"):
                    with socket.socket(fileno=os.dup(int(entry.name))) as connection:
                        if connection.family == socket.AF_INET:
                            connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def boot_another(self) -> None:
        self._another_kernel = True

    def _kernel(self, kernel: Kernel) -> Kernel:
        if self._another_kernel:
            self._another_kernel = False
            others = [p for p in sorted(kernel.image.parent.parent.glob("*/image")) if p != kernel.image]
            return replace(kernel, image=others[0])
        return kernel


class _Watched:
    """A line whose `send` is another."""

    def __init__(self, inner: Any, send: Callable[[str], None]) -> None:
        self._inner, self.send = inner, send

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def main(
    folder: Path, variant: int, faults: Sequence[Fault], arguments: Sequence[str], helper: Helper
) -> None:
    """Run one command line in this (forked) process and end it with the command's code."""
    RealProcess(folder, variant, faults, helper).run(arguments)
