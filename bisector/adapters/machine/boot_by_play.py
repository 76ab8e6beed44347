"""A kernel booted once by Ansible: kexec or GRUB."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.agent.payload import boot_parameters
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.machine_parts import RunningKernel
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.errors import InfrastructureError
from bisector.ports import Job, Kernel, Progress
from bisector.schemas.lab import TestbedSpec

_COMMAND_SECONDS = 60.0
"""Timeout of the short commands below."""

_STATE = r"""
cat /proc/sys/kernel/random/boot_id
uname -r
echo "ours $(sed -n 's/.*perfbisect\.kernel=\([^ ]*\).*/\1/p' /proc/cmdline)"
ls -d /boot/vmlinuz-perfbisect /boot/grub/custom.cfg 2>/dev/null || true
"""

_PLAY_SECONDS = 300.0
"""Timeout of the booting play: copying a kernel of 10 MB over a slow line, and a dozen tasks."""


class PlayedBoot:
    """See `machine_parts.BootMethod`."""

    def __init__(self, spec: TestbedSpec, ansible: Ansible, reach: MachineReach) -> None:
        self._spec, self._ansible, self._reach = spec, ansible, reach

    def request_boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> None:
        """Copy the kernel there and have it booted. See `machine_parts.BootMethod`."""
        if kernel.load:
            raise InfrastructureError(
                f"the kernels of '{kernel.recipe}' need modules before their root file system is there",
                details="a machine over SSH gets a kernel alone, without initramfs and modules",
                cure="take a recipe whose kernels have the drivers built in, or a guest as testbed",
            )
        variables = self._spec.variables
        more = f"{boot_parameters(job.environment).strip()} perfbisect.kernel={kernel.key}"
        self._ansible.play(
            "boot",
            limit=self._spec.name,
            variables={
                "perfbisect_image": str(kernel.image.absolute()),
                "perfbisect_boot_method": variables.boot_method,
                "perfbisect_cmdline": variables.cmdline,
                "perfbisect_cmdline_more": more.strip(),
            },
            folder=folder / "ansible",
            timeout=_PLAY_SECONDS,
            progress=progress,
            connection=self._reach.host,
            groups=("testbeds",),
        )

    def running(self) -> RunningKernel:
        """Ask the machine what it runs."""
        lines = self._sh(_STATE).splitlines()
        return RunningKernel(lines[0], lines[1], "", lines[2].removeprefix("ours").strip(), tuple(lines[3:]))

    def restart(self) -> None:
        """Have the machine boot its own kernel."""
        self._sh("nohup setsid sh -c 'sleep 1; reboot' >/dev/null 2>&1 </dev/null &")

    def forget(self) -> None:
        """Take away everything of ours."""
        self._sh("rm -f /boot/vmlinuz-perfbisect /boot/grub/custom.cfg")

    def _sh(self, script: str) -> str:
        return self._reach.run(["sh", "-c", script], timeout=_COMMAND_SECONDS)
