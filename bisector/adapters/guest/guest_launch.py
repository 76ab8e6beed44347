"""Starts the guest of one boot: its files, its port and its name, here or on another host."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.agent.payload import boot_parameters
from bisector.adapters.guest.counting.counted_runs import CountedRuns
from bisector.adapters.guest.domain_xml import Guest, OnDisk, OnSerial, domain_xml
from bisector.adapters.guest.libvirt_connection import Domain, Hypervisor, PortTaken
from bisector.adapters.guest.liveness import LOOPBACK
from bisector.adapters.guest.remote_host import RemoteBoot
from bisector.adapters.guest.rootfs import GuestImage
from bisector.adapters.system.architectures import Machine
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.model.goal import TestbedClock
from bisector.ports import Job, Kernel, Progress
from bisector.schemas.machine.testbed_variables import TestbedVariables
from bisector.schemas.workload.counted_metrics import is_modelled

log = logging.getLogger(__name__)

_PORT_TRIES = 5
"""Attempts to find a free port: another program may take it before QEMU starts."""


_SEEDS = 1 << 32
"""Seeds to draw from: so many that two boots hardly ever get the same; QEMU takes numbers of 64 bits."""


@dataclass(frozen=True, slots=True)
class GuestBoot:
    """The parameters of one boot. prefix: of the guest's name; kvm: it has it; far: where it runs, if not
    here.
    """

    variables: TestbedVariables
    prefix: str
    clock: TestbedClock
    kvm: bool
    hypervisor: Hypervisor
    kernel: Kernel
    machine: Machine
    job: Job
    folder: Path
    progress: Progress
    counted: CountedRuns | None = None
    far: RemoteBoot | None = None

    @property
    def cmdline(self) -> str:
        """What lab and workload add to the kernel's command line."""
        return (self.variables.cmdline + boot_parameters(self.job.environment)).strip()


@dataclass(frozen=True, slots=True)
class Launched:
    """A guest that runs. started: by `awake_seconds`, when all that it needs was there."""

    domain: Domain
    started: float


def start_on_disk(
    one: GuestBoot, image: GuestImage, console: Path, modules: Path | None
) -> tuple[Launched, int]:
    """Start a guest with a distribution's user space; return the port here that leads to its SSH.

    Raises PortTaken, or InfrastructureError with QEMU's own words.
    """
    disk = image.disk.absolute()
    if one.far is not None:
        one.progress(f"bringing kernel and image to {one.far.host}")
        disk, modules = one.far.put(disk), one.far.put(modules) if modules is not None else None
    for attempt in range(1, _PORT_TRIES + 1):
        port = free_port() if one.far is None else one.far.port
        userspace = OnDisk(disk, port if one.far is None else one.far.there, modules)
        try:
            return launch(one, userspace, console), port
        except PortTaken:
            if attempt == _PORT_TRIES or one.far is not None:
                raise
            log.info("port %d was taken by another program; trying the next one", port)
    raise AssertionError("the loop returns or raises")


def launch(one: GuestBoot, userspace: OnDisk | OnSerial, console: Path) -> Launched:
    """Start a guest; its console is a file where it runs. Raises as `start_on_disk`."""
    variables, far = one.variables, one.far
    kernel, scratch, label = one.kernel.image.absolute(), None, None
    if one.job.needs.block_device:
        scratch = far.scratch(one.job.needs.block_device) if far is not None else scratch_path(one.folder)
    if far is not None:
        kernel, console = far.put(kernel), far.console
        label = (0, 0)  # the schema wants root there
    elif one.hypervisor.uri == "qemu:///system":
        label = (os.getuid(), os.getgid())
    guest = Guest(
        name=f"{one.prefix}{uuid.uuid4().hex[:8]}",
        kernel=kernel,
        userspace=userspace,
        console=console,
        clock=one.clock,
        kvm=one.kvm,
        machine=one.machine,
        memory_mb=variables.memory_mb,
        cpus=variables.cpus,
        cmdline=one.cmdline,
        label=label,
        scratch=scratch,
        old=one.kernel.release.startswith("2."),
        plugin=one.counted.argument if one.counted is not None else "",
        confined_by=one.hypervisor.confining_models() if one.counted is not None else (),
        seed=_seed(one.job),
    )
    started = awake_seconds()
    domain = one.hypervisor.start(guest.name, domain_xml(guest))
    # QEMU has the disk open: without a name it is gone with the guest, even if this process is killed.
    scratch_path(one.folder).unlink(missing_ok=True)
    return Launched(domain, started)


def _seed(job: Job) -> int:
    """Return the seed of a boot's random numbers: the same for all, unless a model of caches decides, or the
    workload wants fresh ones.

    What such a model says depends on where pages lie and ticks fall. Were that the same in each boot of a
    kernel, two kernels would differ by an accident of it, however many boots they got. Where a model only
    counts beside an exact metric, that metric must stay exact: goal.Goal.exact asks about it alone. The same
    holds of a workload whose runs differ by chance: with one seed its boots are copies of one sample.
    """
    counting = job.counting
    modelled = counting is not None and any(map(is_modelled, counting.needed))
    fresh = job.environment.get("seed") == "fresh"
    return 1 + secrets.randbelow(_SEEDS) if modelled or fresh else 1


def free_port() -> int:
    """Return a free port of this host's loopback."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def scratch_path(folder: Path) -> Path:
    """Return the file behind a boot's scratch disk."""
    return folder / "scratch.raw"
