"""A kernel that is booted once by one Ansible task: its files go to the machine if they are not there yet."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from bisector.adapters.agent.payload import boot_parameters
from bisector.adapters.ansible.playbook_events import explain_failure
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.boot.boot_script import (
    SCRIPT,
    crash_records,
    end_request,
    forget,
    parse_answer,
    refusal,
    restart_default,
    restart_served,
    running_kernel_of,
)
from bisector.adapters.machine.boot.netboot import Netboot
from bisector.adapters.machine.machine_parts import BootOverride, RunningKernel
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.adapters.system.files import os_errors_reported, sha256_of, write_file
from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError, RequestError
from bisector.linux.boot_remarks import OWN_BUILD_ID, OWN_RELEASE
from bisector.model.machines.firmware import CMDLINE
from bisector.ports import Job, Kernel, Progress
from bisector.schemas.lab import TestbedSpec

log = logging.getLogger(__name__)

_PLAY_SECONDS = 900.0
"""Timeout of the booting play: 100 MB of modules over a slow line, and an initramfs made of them there."""

_WATCHDOG_SPARE_SECONDS = 120
"""Time of a watchdog beyond the boot timeout: for the shutdown before, and for disarming it."""

_FETCH_SECONDS = 300.0
"""Timeout of fetching an initramfs of 60 MB over a slow line."""

_INITRAMFS_BYTES_MAX = 1 << 30
"""More than any initramfs; one with all firmware of graphics cards has some 200 MB."""

_TASK = "telling the machine to boot the kernel"

_UNPACKED = 5
"""Bytes on the machine for each of the modules' archive: itself, and what gzip made four times smaller."""

_INITRAMFS_KIB = 100 << 10
"""Room for an initramfs; Debian's with all drivers has 40 to 60 MiB."""

_FACTS = {OWN_RELEASE: "default_release", OWN_BUILD_ID: "default_build_id", CMDLINE: "base_cmdline"}
_FACT_CHARACTERS = 4096
"""Characters that are kept of a fact: a kernel's command line has at most 4,096 on any architecture."""


class PlayedBoot:
    """See `machine_parts.BootMethod`."""

    def __init__(
        self, spec: TestbedSpec, ansible: Ansible, reach: MachineReach, override: BootOverride | None = None
    ) -> None:
        self._spec, self._ansible, self._reach, self._override = spec, ansible, reach, override
        netboot = spec.variables.netboot
        self._netboot = Netboot(netboot) if netboot is not None else None
        self._leaves_something = False
        self._crashes_before: Sequence[str] = ()
        self.facts: Mapping[str, str] = {}
        self.ran = ""
        self.watchdog_spare = 0.0

    def must_leave_kernel(self) -> bool:
        """A kexec from one kernel under test to the next would pass on what the first did to the hardware.

        See `machine_parts.BootMethod`.
        """
        variables = self._spec.variables
        if variables.boot_method != "kexec" or variables.between_boots == "kexec":
            return False
        return running_kernel_of(self._reach.host).ours != ""

    def request_boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> str:
        """Put the kernel there and have it booted. See `machine_parts.BootMethod`."""
        answer = parse_answer(self._play(kernel, job, folder, progress))
        self._crashes_before = answer.get("crashes", "").split()
        self.ran = answer.get("ran", "")
        self.facts = {
            fact: answer[name][:_FACT_CHARACTERS] for fact, name in _FACTS.items() if answer.get(name)
        }
        if answer.get("watchdog", "none") != "none":
            progress(f"the watchdog of '{self._spec.name}': {answer['watchdog']}")
        armed = " s by " in answer.get("watchdog", "")
        self.watchdog_spare = float(_WATCHDOG_SPARE_SECONDS) if armed else 0.0
        # kexec alone leaves nothing that could start the kernel again: an exchange less in each trial.
        self._leaves_something = self._spec.variables.boot_method != "kexec" or armed
        if self._spec.variables.boot_method == "pxe":
            self._boot_from_network(kernel, answer, folder, progress)
        return answer.get("boot_id", "")

    def end_request(self, *, up: bool) -> None:
        """Take back what would start the kernel again. See `machine_parts.BootMethod`."""
        self._end_network_boot()
        if up and self._leaves_something:
            end_request(self._reach.host)
            self.watchdog_spare = 0.0

    def crash(self) -> str:
        """Return the records of a crash since the request. See `machine_parts.BootMethod`."""
        return crash_records(self._reach.host, self._crashes_before)

    def running(self) -> RunningKernel:
        """Ask the machine what it runs. See `machine_parts.BootMethod`."""
        return running_kernel_of(self._reach.host)

    def restart(self) -> None:
        """Have the machine boot its own kernel. See `machine_parts.BootMethod`."""
        self._end_network_boot()
        restart_default(self._reach.host)

    def forget(self) -> None:
        """Remove what perfbisect put there. See `machine_parts.BootMethod`."""
        self._end_network_boot()
        forget(self._reach.host)

    def _boot_from_network(
        self, kernel: Kernel, answer: Mapping[str, str], folder: Path, progress: Progress
    ) -> None:
        """Serve the kernel that the machine has prepared, and restart it."""
        assert self._netboot is not None, "the schema asks for it"
        initrd = folder / "initrd" if answer.get("initrd") else None
        if initrd is not None:
            progress("fetching the initramfs")
            with SSH(self._reach.host) as ssh:
                ssh.save(
                    ["cat", answer["initrd"]], initrd, timeout=_FETCH_SECONDS, max_bytes=_INITRAMFS_BYTES_MAX
                )
        try:
            self._netboot.publish(kernel.image, initrd, answer["booting"])
            self._choose_network(progress)
            restart_served(self._reach.host)
        except BaseException:
            self._end_network_boot()
            with contextlib.suppress(InfrastructureError):
                end_request(self._reach.host)  # the watchdog of a boot that does not come
            raise
        finally:
            if initrd is not None:
                initrd.unlink(missing_ok=True)  # the netboot folder has its own

    def _choose_network(self, progress: Progress) -> None:
        """Have the firmware begin with the network once. Raises InfrastructureError for a dead BMC."""
        if self._override is None:
            return
        name = self._spec.name
        try:
            self._override.boot_once_from_network()
        except PowerRefused as refused:
            progress(f"{refused.message}: the boot order of '{name}' itself must begin with the network")
        except InfrastructureError as error:
            raise InfrastructureError(
                f"the testbed '{name}' cannot be told to boot from the network once: {error.message}",
                details=error.details,
                cure=f"try 'perfbisect lab power {name} status', and look at its BMC",
            ) from error

    def _end_network_boot(self) -> None:
        """Have the next boot come from the disk. If a BMC fails a warning will do: no file is served now."""
        if self._netboot is None:
            return
        self._netboot.withdraw()
        if self._override is not None:
            try:
                self._override.end_boot_override()
            except (InfrastructureError, RequestError) as error:  # RequestError: its password is missing now
                log.warning(
                    "the boot order of '%s' may still begin with the network: %s", self._spec.name, error
                )

    def _play(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> str:
        variables = self._spec.variables
        files, key = kernel_files(kernel, folder)
        with os_errors_reported("cannot read the kernel's files"):
            image, modules = (path.stat().st_size for path in (kernel.image, kernel.modules or SCRIPT))
        played = self._ansible.play(
            "boot",
            limit=self._spec.name,
            variables={
                "perfbisect_files": {name: str(path.absolute()) for name, path in files.items()},
                "perfbisect_kernel": key,
                "perfbisect_kib": (image + modules * _UNPACKED >> 10)
                + (_INITRAMFS_KIB if kernel.modules else 0),
                "perfbisect_release": kernel.release,
                "perfbisect_boot_method": variables.boot_method,
                "perfbisect_cmdline": variables.cmdline,
                "perfbisect_cmdline_more": boot_parameters(job.environment).strip(),
                "perfbisect_watchdog": int(variables.boot_timeout) + _WATCHDOG_SPARE_SECONDS,
            },
            folder=folder / "ansible",
            timeout=_PLAY_SECONDS,
            progress=progress,
            connection=self._reach.host,
            check=False,
            groups=("testbeds",),
        )
        output = str(played.result(_TASK).get("stdout", ""))
        if played.failed is not None:
            raise refusal(self._spec.name, output) or InfrastructureError(
                f"the testbed '{self._spec.name}' could not be told to boot the kernel",
                details=f"{explain_failure(played.failed)}\nlog: {played.log}",
            )
        return output


def kernel_files(kernel: Kernel, folder: Path) -> tuple[dict[str, Path], str]:
    """Return what goes to the machine, by its name there, and the kernel's key: what it and its modules are.

    folder: of the boot, for the list of checksums.
    """
    files = {"image": kernel.image, "config": kernel.config}
    if kernel.modules is not None:
        files["modules.tar.gz"] = kernel.modules
    with os_errors_reported("cannot read the kernel's files"):
        files = {name: path for name, path in files.items() if name != "config" or path.is_file()}
        checksums = {name: sha256_of(path) for name, path in files.items()}
    code = "".join(checksum for name, checksum in sorted(checksums.items()) if name != "config")
    write_file(folder / "sums", "".join(f"{sum_}  {name}\n" for name, sum_ in checksums.items()).encode())
    key = hashlib.sha256(code.encode()).hexdigest()[:16]
    return {"boot.sh": SCRIPT, **files, "sums": folder / "sums"}, key
