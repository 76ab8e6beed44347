"""A kernel booted once by Ansible: kexec or GRUB."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.agent.payload import boot_parameters
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError
from bisector.ports import Job, Kernel, Progress
from bisector.schemas.lab import TestbedSpec

_PLAY_SECONDS = 300.0
"""Timeout of the booting play: copying a kernel of 10 MB over a slow line, and a dozen tasks."""


class PlayedBoot:
    """See `machine_parts.BootMethod`."""

    def __init__(self, spec: TestbedSpec, ansible: Ansible, host: SSHHost) -> None:
        self._spec, self._ansible, self._host = spec, ansible, host

    def request_boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> None:
        """Copy the kernel there and have it booted. See `machine_parts.BootMethod`."""
        if kernel.load:
            raise InfrastructureError(
                f"the kernels of '{kernel.recipe}' need modules before their root file system is there",
                details="a machine over SSH gets a kernel alone, without initramfs and modules",
                cure="take a recipe whose kernels have the drivers built in, or a guest as testbed",
            )
        variables = self._spec.variables
        self._ansible.play(
            "boot",
            limit=self._spec.name,
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
