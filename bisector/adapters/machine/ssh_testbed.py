"""A machine over SSH as a testbed: boots each kernel once, by kexec or GRUB, and proves that it did.

The machine's own default kernel is never touched and comes back with every boot that nobody asked for: after
a panic (panic=10 is on the command line) or a power cycle.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from bisector.adapters.agent.deploy import Deployment
from bisector.adapters.agent.payload import boot_parameters, with_lab_settings
from bisector.adapters.agent.scratch_disk import check_device, with_scratch_disk
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.console import CommandConsole
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.command import run_command
from bisector.adapters.system.ssh import SSH, SSHRefused
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError, RequestError
from bisector.model.goal import TestbedClock
from bisector.ports import Job, Kernel, Progress, Session
from bisector.schemas.lab import BuilderSpec, TestbedSpec

log = logging.getLogger(__name__)

_PLAY_SECONDS = 300.0
"""Timeout of the booting play: copying a kernel of 10 MB over a slow line, and a dozen tasks."""

_PROBE_SECONDS = 5.0
"""Timeout of one attempt to connect; a machine that boots refuses at once or is silent."""

_DEVICE_CHECK_SECONDS = 30.0
"""Timeout of opening a block device; one that sleeps takes seconds to spin up."""

_PAUSE_SECONDS = 1.0
"""Pause between two attempts."""

_POWER_SECONDS = 120.0
"""Timeout of the command that switches power; some management controllers take most of a minute."""


class SSHTestbed:
    """See `ports.Testbed`. A testbed that cannot be brought back refuses further use with the first cause."""

    __test__ = False

    clock: TestbedClock = "wall"

    def __init__(self, spec: TestbedSpec, ansible: Ansible) -> None:
        """Raises RequestError if the inventory does not say how to reach or boot the machine."""
        self.name = spec.name
        self._spec = spec
        self._ansible = ansible
        self._host = ssh_host(spec)
        self._broken: PerfbisectError | None = None
        if spec.variables.boot_method is None:
            raise RequestError(
                f"the testbed '{self.name}' has no boot method",
                cure="set the host variable perfbisect_boot_method to kexec or grub in the inventory",
            )

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot the kernel once and deploy the job. See `ports.Testbed.boot`."""
        if self._broken is not None:
            raise self._broken
        if kernel.load:
            raise InfrastructureError(
                f"the kernels of '{kernel.recipe}' need modules before their root file system is there",
                details="a machine over SSH gets a kernel alone, without initramfs and modules",
                cure="take a recipe whose kernels have the drivers built in, or a guest as testbed",
            )
        started = awake_seconds()
        job = with_lab_settings(job, self._spec.variables.environment.settings())
        console = CommandConsole(self._spec.variables.console, folder / "console.log")
        try:
            before = self._ensure_reachable(progress)
            if job.needs.block_device:
                job = self._with_device(job)
            self._request_boot(kernel, job, folder, progress)
            with Deployment(
                self._ansible,
                self.name,
                self._host,
                job,
                folder,
                progress,
                boot_timeout=self._spec.variables.boot_timeout,
                workdir=self._spec.workdir,
                undo=True,
            ) as deployment:
                progress(f"waiting for '{self.name}' to come up")
                self._wait_for_new_boot(before, console)
                if job.needs.block_device:
                    self._with_device(job)  # the kernel that runs now may have mounted it at boot
                return deployment.start_session(
                    kernel,
                    crashed=console.death,
                    on_leave=console.close,
                    boot_seconds=awake_seconds() - started,
                    console=console.path,
                )
        except BaseException:
            console.close()
            raise

    def _ensure_reachable(self, progress: Progress) -> str:
        """Return the id of the machine's current boot, after a power cycle if need be."""
        try:
            return self._boot_id()
        except SSHRefused as error:
            progress(f"'{self.name}' does not answer: switching it off and on")
            if not self._spec.variables.power.cycle:
                self._broken = InfrastructureError(
                    f"the testbed '{self.name}' does not answer and cannot be switched from here",
                    details=f"{error}\n{error.details}",
                    cure="bring it up, or set its variable perfbisect_power.cycle to a command that does",
                )
                raise self._broken from error
        run_command(self._spec.variables.power.cycle, timeout=_POWER_SECONDS)
        deadline = awake_seconds() + self._spec.variables.boot_timeout
        while True:
            try:
                return self._boot_id()
            except SSHRefused as error:
                if awake_seconds() > deadline:
                    self._broken = InfrastructureError(
                        f"the testbed '{self.name}' does not come back after a power cycle",
                        details=f"{error}\n{error.details}",
                    )
                    raise self._broken from error
            time.sleep(_PAUSE_SECONDS)

    def _with_device(self, job: Job) -> Job:
        """Return the job with the device that the lab names. Raises RequestError if it cannot be used."""
        path = self._spec.variables.block_device
        with SSH(self._host, timeout=_PROBE_SECONDS) as ssh:
            check_device(
                path,
                job.needs.block_device,
                self.name,
                lambda command: ssh.run(command, timeout=_DEVICE_CHECK_SECONDS).output,
            )
        return with_scratch_disk(job, path)

    def _request_boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> None:
        variables = self._spec.variables
        self._ansible.play(
            "boot",
            limit=self.name,
            variables={
                "perfbisect_image": str(kernel.image.absolute()),
                "perfbisect_boot_method": variables.boot_method,
                "perfbisect_cmdline": variables.cmdline,
                "perfbisect_cmdline_more": boot_parameters(job.environment).strip(),
            },
            folder=folder / "ansible",
            timeout=_PLAY_SECONDS,
            progress=progress,
            connection=self._host,
            groups=("testbeds",),
        )

    def _wait_for_new_boot(self, before: str, console: CommandConsole) -> None:
        """Wait until SSH answers from another boot than `before`."""
        deadline = awake_seconds() + self._spec.variables.boot_timeout
        last: PerfbisectError | None = None
        while awake_seconds() < deadline:
            try:
                if self._boot_id() != before:
                    return
                last = None
            except SSHRefused as error:
                last = error
            death = console.death()
            if death is not None:
                raise BootFailed("the kernel died while it booted", details=death)
            time.sleep(_PAUSE_SECONDS)
        waited = f"{self._spec.variables.boot_timeout:.0f} s"
        if last is None:
            raise InfrastructureError(
                f"the testbed '{self.name}' did not reboot within {waited}",
                cure="try its boot method by hand: ansible-playbook playbooks/prepare.yml checks the tools",
            )
        raise BootFailed(
            f"the kernel never answered over SSH within {waited}",
            details=f"{last.details}\n{console.end()}".strip(),
        )

    def _boot_id(self) -> str:
        with SSH(self._host, timeout=_PROBE_SECONDS) as ssh:
            return ssh.run(["cat", "/proc/sys/kernel/random/boot_id"], timeout=_PROBE_SECONDS).output.strip()


def ssh_host(spec: TestbedSpec | BuilderSpec) -> SSHHost:
    """Return how a machine of the inventory is reached. Raises RequestError if it says no key."""
    way, known_hosts = spec.connection, "~/.ssh/known_hosts"
    kind = "builder"
    if isinstance(spec, TestbedSpec):
        kind, known_hosts = "testbed", spec.variables.known_hosts
    if way.key is None:
        raise RequestError(
            f"the {kind} '{spec.name}' has no SSH key",
            cure="set the host variable ansible_ssh_private_key_file in the inventory",
        )
    return SSHHost(way.address, way.port, way.user, way.key, Path(known_hosts).expanduser())
