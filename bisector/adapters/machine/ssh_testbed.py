"""A machine over SSH as a testbed: boots each kernel once, by kexec or GRUB, and proves that it did.

The machine's own default kernel is never touched and comes back with every boot that nobody asked for: after
a panic (panic=10 is on the command line) or a power cycle.
"""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.agent.deploy import Deployment
from bisector.adapters.agent.payload import with_lab_settings
from bisector.adapters.agent.scratch_disk import check_device, with_scratch_disk
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.boot.boot_request import PlayedBoot
from bisector.adapters.machine.boot_verdict import judge
from bisector.adapters.machine.boot_watch import wait_for_answer, watch_boot
from bisector.adapters.machine.console import CommandConsole
from bisector.adapters.machine.machine_parts import BootMethod, Console, Power
from bisector.adapters.machine.machine_reach import MachineReach, ssh_host
from bisector.adapters.machine.power_command import CommandPower
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.model.goal import TestbedClock
from bisector.ports import Job, Kernel, Progress, Session
from bisector.schemas.lab import TestbedSpec

_DEVICE_CHECK_SECONDS = 30.0
"""Timeout of opening a block device; one that sleeps takes seconds to spin up."""


class SSHTestbed:
    """See `ports.Testbed`. A testbed that cannot be brought back refuses further use with the first cause."""

    __test__ = False

    clock: TestbedClock = "wall"

    def __init__(self, spec: TestbedSpec, ansible: Ansible) -> None:
        """Raises RequestError if the inventory does not say how to reach or boot the machine."""
        self.name = spec.name
        self._spec = spec
        self._ansible = ansible
        self._reach = MachineReach(ssh_host(spec))
        self._broken: PerfbisectError | None = None
        if spec.variables.boot_method is None:
            raise RequestError(
                f"the testbed '{self.name}' has no boot method",
                cure="set the host variable perfbisect_boot_method to kexec or grub (see playbooks)",
            )
        self._method: BootMethod = PlayedBoot(spec, ansible, self._reach)
        self._power: Power | None = CommandPower(spec.variables.power) if spec.variables.power.cycle else None

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot the kernel once and deploy the job. See `ports.Testbed.boot`."""
        if self._broken is not None:
            raise self._broken
        started = awake_seconds()
        job = with_lab_settings(job, self._spec.variables.environment.settings())
        console: Console = CommandConsole(self._spec.variables.console, folder / "console.log")
        try:
            self._ensure_reachable(progress)
            if job.needs.block_device:
                job = self._with_device(job)
            before = self._method.request_boot(kernel, job, folder, progress)
            with Deployment(
                self._ansible,
                self.name,
                self._reach.host,
                job,
                folder,
                progress,
                boot_timeout=self._spec.variables.boot_timeout,
                workdir=self._spec.workdir,
                undo=True,
            ) as deployment:
                progress(f"waiting for '{self.name}' to come up")
                self._wait_for_new_boot(before, console)
                self._method.end_request(up=True)
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
            self._method.end_request(up=False)
            console.close()
            raise

    def _ensure_reachable(self, progress: Progress) -> str:
        """Return the id of the machine's current boot, after a power cycle if need be."""
        try:
            return self._reach.boot_id()
        except SSHRefused as error:
            progress(f"'{self.name}' does not answer: switching it off and on")
            if self._power is None:
                self._broken = InfrastructureError(
                    f"the testbed '{self.name}' does not answer and cannot be switched from here",
                    details=f"{error}\n{error.details}",
                    cure="bring it up, or set its variable perfbisect_power.cycle to a command that does",
                )
                raise self._broken from error
        self._power.cycle()
        try:
            return wait_for_answer(self._reach, self._spec.variables.boot_timeout)
        except SSHRefused as error:
            self._broken = InfrastructureError(
                f"the testbed '{self.name}' does not come back after a power cycle",
                details=f"{error}\n{error.details}",
            )
            raise self._broken from error

    def _with_device(self, job: Job) -> Job:
        """Return the job with the device that the lab names. Raises RequestError if it cannot be used."""
        path = self._spec.variables.block_device
        check_device(
            path,
            job.needs.block_device,
            self.name,
            lambda command: self._reach.run(command, timeout=_DEVICE_CHECK_SECONDS),
        )
        return with_scratch_disk(job, path)

    def _wait_for_new_boot(self, before: str, console: Console) -> None:
        """Wait until SSH answers from another boot than `before`."""
        seconds = self._spec.variables.boot_timeout
        seen = watch_boot(self._reach, before, console, seconds)
        error = judge(seen, before, self.name, seconds, console.end())
        if error is not None:
            raise error
