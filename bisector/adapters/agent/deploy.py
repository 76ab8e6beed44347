"""From a booting testbed to a session: deploy the workload, verify the kernel, start the agent.

Ansible needs one to three seconds before its first task. A `Deployment` therefore starts the play while
the testbed boots and holds it at a gate. `start_session` opens the gate when SSH answers, so a trial pays for
the task alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.agent.answers import parse_facts
from bisector.adapters.agent.cpu_deadline import CpuTime
from bisector.adapters.agent.payload import PREPARE, agent_command, write_archive
from bisector.adapters.agent.result_files import fetch_over_ssh
from bisector.adapters.agent.session import AgentSession, CrashReport, await_greeting
from bisector.adapters.ansible.playbook_events import Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import Line
from bisector.adapters.system.files import os_errors_reported
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import BootFailed, InfrastructureError, TestbedLost
from bisector.ports import BootFacts, Job, Kernel, Progress

if TYPE_CHECKING:
    from bisector.adapters.system.ssh import SSH

_DEPLOY_SECONDS = 120.0
"""Timeout of the task itself, which takes about one second. A guest that needs more does not work."""

_CONNECT_SECONDS = 30.0
"""Timeout of one SSH connection to a testbed that has just answered; emulated, on a busy host, 1 to 2 s."""

_POLL_SECONDS = 0.1
"""Polling interval; a trial may wait this much too long."""

_SERVE = """
if [ -n "$1" ] && command -v flock >/dev/null; then exec 9>>"$1"; flock -n 9; fi
cd "$2" && shift 2 && exec "$@"
"""

_TASK = "putting the workload on the testbed"


class Deployment:
    """A play that waits for its testbed. A context manager: an error in its block cancels the play.

    testbed: its name in the inventory. host: how it will be reached. folder: of this boot.
    boot_timeout: seconds until `start_session` must be called. workdir: the workload's folder on the testbed;
    made anew, and on a file system that takes executables. undo: put settings back at the end, for machines
    that live on. agent_lock: a file there that is locked while the agent runs, if it has flock; '': none.
    """

    def __init__(
        self,
        ansible: Ansible,
        testbed: str,
        host: SSHHost,
        job: Job,
        folder: Path,
        progress: Progress,
        *,
        boot_timeout: float = 600.0,
        workdir: str = "/work/perfbisect",
        undo: bool = False,
        agent_lock: str = "",
    ) -> None:
        self._host, self._job, self._folder, self._progress = host, job, folder, progress
        self._workdir, self._undo, self._agent_lock = workdir, undo, agent_lock
        self._archive = folder / "deploy.tar"
        self._gate = folder / "deploy.gate"
        self._cancelled = threading.Event()
        self._task: Task | None = None
        self._error: BaseException | None = None
        outer = ansible.stop
        self._ansible = replace(
            ansible, stop=lambda: self._cancelled.is_set() or (outer is not None and outer())
        )
        with os_errors_reported(f"cannot write {self._archive}"):
            folder.mkdir(parents=True, exist_ok=True)
            self._gate.unlink(missing_ok=True)
            write_archive(job, self._archive)
        self._thread = threading.Thread(
            target=self._play, args=(testbed, boot_timeout), name=f"deploy {testbed}", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cancel()

    def start_session(
        self,
        kernel: Kernel | None,
        *,
        crashed: CrashReport,
        on_leave: Callable[[], None],
        boot_seconds: float,
        ticks_per_second: float | None = None,
        wall: bool = True,
        console: Path | None = None,
        cpu_time: CpuTime = lambda: None,
        paused: Callable[[], TestbedLost | None] = lambda: None,
    ) -> AgentSession:
        """Deploy, verify that `kernel` runs (None: any may), start the agent. SSH must answer by now.

        boot_seconds: what the boot took so far; `BootFacts.overhead_seconds` is what this call took. The rest
        as in `AgentSession`. Raises BootFailed (the kernel died) or InfrastructureError (such as another
        kernel that runs); the deployment is cancelled then, and the caller ends the boot.
        """
        started = awake_seconds()
        self._progress(_TASK)
        try:
            facts = self._wait_for_facts(crashed)
            if kernel is not None:
                verify_kernel(kernel, facts)
            self._progress("starting the measuring agent")
            ssh, line = self._start_agent()
            self._wait_for_end()  # nothing of Ansible's may disturb a run
        except BaseException as error:
            self.cancel()
            death = crashed() if isinstance(error, InfrastructureError) else None
            if death is not None:
                raise BootFailed("the kernel died while the workload was put on it", details=death) from error
            raise

        def leave() -> None:
            ssh.close()
            on_leave()

        return AgentSession(
            facts=boot_facts(facts, boot_seconds, awake_seconds() - started, console),
            job=self._job,
            line=line,
            folder=self._folder,
            crashed=crashed,
            on_leave=leave,
            ticks_per_second=ticks_per_second,
            wall=wall,
            cpu_time=cpu_time,
            paused=paused,
            fetch=fetch_over_ssh(ssh, self._workdir),
        )

    def cancel(self) -> None:
        """End the play wherever it is. Never raises; harmless after `start_session`."""
        self._cancelled.set()
        self._thread.join()
        self._remove_files()

    def _play(self, testbed: str, boot_timeout: float) -> None:
        try:
            self._ansible.play(
                "deploy",
                limit=testbed,
                variables={
                    "perfbisect_archive": str(self._archive.absolute()),
                    "perfbisect_workdir": self._workdir,
                    "perfbisect_prepare": PREPARE,
                    "perfbisect_gate": str(self._gate.absolute()),
                    "perfbisect_gate_timeout": boot_timeout,
                },
                folder=self._folder / "ansible",
                timeout=boot_timeout + _DEPLOY_SECONDS,
                progress=lambda _: None,  # the task starts long before it does anything
                connection=self._host,
                on_task=self._on_task,
                reap=False,
            )
        except BaseException as error:
            self._error = error

    def _on_task(self, task: Task) -> None:
        if task.name.endswith(_TASK) and task.status == "ok":
            self._task = task

    def _wait_for_facts(self, crashed: CrashReport) -> dict[str, str]:
        """Open the gate, wait for the task and return its facts. Ansible itself ends later."""
        self._gate.touch()
        deadline = awake_seconds() + _DEPLOY_SECONDS
        while self._task is None and self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)
            death = crashed()
            if death is not None:
                raise BootFailed("the kernel died while the workload was put on it", details=death)
            if awake_seconds() > deadline:
                raise InfrastructureError(
                    f"the workload was not on {self._host} after {_DEPLOY_SECONDS:.0f} s"
                )
        if self._task is None:
            self._wait_for_end()
            raise InfrastructureError("the deploying play ended without its task")
        return parse_facts(str(self._task.result.get("stdout", "")))

    def _start_agent(self) -> tuple[SSH, Line]:
        """Connect and start the agent, in a connection of its own."""
        from bisector.adapters.system.ssh import SSH  # paramiko takes 0.1 s, which `plan` need not wait for

        ssh = SSH(self._host, timeout=_CONNECT_SECONDS)
        try:
            serve = agent_command(self._job, undo=self._undo)
            line = ssh.talk(["sh", "-c", _SERVE, "sh", self._agent_lock, self._workdir, *serve])
            await_greeting(line)
        except BaseException:
            ssh.close()
            raise
        return ssh, line

    def _wait_for_end(self) -> None:
        self._thread.join()
        self._remove_files()
        if self._error is not None:
            raise self._error

    def _remove_files(self) -> None:
        for path in (self._archive, self._gate):  # the payload is stored once for a bisection
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def boot_facts(
    facts: Mapping[str, str], seconds: float, overhead_seconds: float, console: Path | None
) -> BootFacts:
    """Return the facts of a boot. facts: as the agent printed them; the rest as in `BootFacts`."""
    release, build_id = facts.get("uname.release", ""), facts.get("build_id", "")
    return BootFacts(release, build_id, facts, seconds, overhead_seconds, console)


def verify_kernel(kernel: Kernel, facts: Mapping[str, str]) -> None:
    """Raise InfrastructureError unless the facts are of this very build: release, and the rest if known.

    A testbed that runs something else says nothing about the commit, so this is never a skip.
    """
    wanted = {
        "uname.release": kernel.release,
        "uname.version": kernel.version,
        "build_id": kernel.build_id,
    }
    for name, value in wanted.items():
        if value and facts.get(name, "") and facts[name] != value:
            raise InfrastructureError(
                "the testbed runs another kernel than the one under test",
                details=f"{name}: expected {value}, found {facts[name]}",
            )
    if not any(value and facts.get(name) == value for name, value in wanted.items()):
        raise InfrastructureError(
            "the testbed does not tell which kernel it runs",
            details=f"expected release {kernel.release}, build id {kernel.build_id}",
        )
