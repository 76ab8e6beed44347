"""This machine as a testbed: it cannot boot kernels, but runs a workload under the one it has.

For `perfbisect workload run`, for A/A trials, and for writing a workload before there is a lab.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bisector.adapters.agent.answers import parse_facts
from bisector.adapters.agent.deploy import boot_facts
from bisector.adapters.agent.payload import (
    AGENT,
    FACTS,
    SETTINGS,
    agent_command,
    agent_files,
    with_lab_settings,
)
from bisector.adapters.agent.result_files import move_from_folder
from bisector.adapters.agent.scratch_disk import check_device, with_scratch_disk
from bisector.adapters.agent.session import AgentSession, await_greeting
from bisector.adapters.system.command import Conversation, run_command
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import RequestError
from bisector.model.goal import TestbedClock
from bisector.ports import Job, Kernel, Progress, Session

_PREPARE_SECONDS = 120.0
"""Timeout of reading some hundred files of /proc and /sys, which takes milliseconds. Dropping the caches of a
busy machine has taken most of a minute."""


def running_kernel() -> Kernel:
    """Return the kernel this machine runs, as far as it can be known from inside: its release."""
    nowhere = Path("/nonexistent")
    return Kernel(
        sha="",
        recipe="running",
        binary="",
        image=nowhere,
        config=nowhere,
        log=nowhere,
        release=os.uname().release,
        build_id="",
        seconds=0.0,
        cached=True,
    )


class LocalTestbed:
    """See `ports.Testbed`. Settings that a job asks for are undone when its session is left."""

    __test__ = False

    clock: TestbedClock = "wall"
    has_own_kernel = False

    def __init__(
        self, name: str = "local", block_device: str = "", environment: Mapping[str, str] | None = None
    ) -> None:
        """block_device: of this machine, that workloads may overwrite; environment: the lab's settings."""
        self.name = name
        self._environment = dict(environment or {})
        self._block_device = block_device

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Deploy the job under the running kernel. Raises RequestError if `kernel` is another one."""
        if kernel.release != os.uname().release:
            raise RequestError(
                f"the testbed '{self.name}' is this machine and cannot boot the kernel {kernel.release}",
                details=f"it runs {os.uname().release}",
                cure="use a libvirt guest (perfbisect_kind: libvirt) or a machine over SSH as testbed",
            )
        job = with_lab_settings(job, self._environment)
        if job.needs.block_device:
            job = self._with_device(job)
        started = time.monotonic()
        work = folder.absolute() / "work"
        progress("putting the workload on this machine")
        with os_errors_reported(f"cannot write {work}"):
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(job.payload, work)
            for name, data in agent_files(job).items():
                (work / name).write_bytes(data)
        prepare: list[str | Path] = [work / AGENT, "prepare", FACTS, SETTINGS]
        try:
            facts = parse_facts(run_command(prepare, cwd=work, timeout=_PREPARE_SECONDS).output)
            for name in {"kaslr", "isolated"} & job.environment.keys():
                facts[f"setting.{name}.error"] = "only a boot can change it"
            progress("starting the measuring agent")
            line = Conversation(agent_command(job, undo=True), cwd=work)
            await_greeting(line)
        except BaseException:
            run_command([work / AGENT, "undo"], cwd=work, timeout=_PREPARE_SECONDS)
            raise
        overhead = time.monotonic() - started
        return AgentSession(
            facts=boot_facts(facts, 0.0, overhead, None),
            job=job,
            line=line,
            folder=folder,
            crashed=lambda: None,
            on_leave=lambda: None,  # the agent puts settings back when it ends, however it ends
            fetch=move_from_folder(work),
            lives_on=True,
        )

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        """Do nothing: settings end with the session, and nothing was booted."""

    def _with_device(self, job: Job) -> Job:
        path = self._block_device
        if not path:
            raise RequestError(
                f"the workload '{job.name}' overwrites a block device; none of this machine is named for it",
                cure="measure in a guest with --rev, or set perfbisect_block_device in an inventory",
            )
        check_device(
            path,
            job.needs.block_device,
            self.name,
            lambda command: run_command(command, timeout=_PREPARE_SECONDS).output,
            sys.executable,
        )
        return with_scratch_disk(job, path)
