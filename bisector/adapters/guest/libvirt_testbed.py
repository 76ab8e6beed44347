"""A guest of this machine as a testbed: libvirt boots the kernel directly.

Each boot is a new transient domain. The kernel says which user space it can carry: a distribution's on a
read-only disk, reached by SSH through a forwarded port, or an initramfs that is driven over a serial port
(`serial`). A kernel that panics, hangs or never answers raises `BootFailed`. A guest that somebody killed, or
a libvirt that does not work, raises InfrastructureError.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import socket
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.agent.deploy import Deployment
from bisector.adapters.agent.payload import boot_parameters, with_lab_settings
from bisector.adapters.agent.scratch_disk import scratch_file, with_scratch_disk
from bisector.adapters.agent.session import AgentSession
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.guest import serial
from bisector.adapters.guest.counting.counted_runs import CountedRuns
from bisector.adapters.guest.domain_xml import (
    TICKS_PER_SECOND,
    Guest,
    OnDisk,
    OnSerial,
    domain_xml,
    scratch_device,
)
from bisector.adapters.guest.guest_session import GuestSession, destroying_on_failure
from bisector.adapters.guest.initramfs import checksum, first_process, initramfs
from bisector.adapters.guest.kvm_probe import KvmProbe
from bisector.adapters.guest.libvirt_connection import Domain, Hypervisor, PortTaken
from bisector.adapters.guest.liveness import LOOPBACK, Liveness, new_console, wait_for_ssh
from bisector.adapters.guest.module_initramfs import module_initramfs
from bisector.adapters.guest.rootfs import GuestImage, GuestImages
from bisector.adapters.system.architectures import Machine, machine_for
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel_fifo import FifoLine
from bisector.adapters.system.console_log import ConsoleLog
from bisector.adapters.system.files import exclusive_lock, write_file
from bisector.errors import InfrastructureError
from bisector.model.commit_graph import short_name
from bisector.model.goal import TestbedClock
from bisector.ports import Counting, Job, Kernel, Progress, Session
from bisector.schemas.lab import TestbedSpec

log = logging.getLogger(__name__)

_PORT_TRIES = 5
"""Attempts to find a free port: another program may take it before QEMU starts."""


class LibvirtTestbed:
    """See `ports.Testbed`. One guest at a time, over all processes of a state folder.

    Guests end with the process that booted them. The next boot ends one that survived.
    """

    __test__ = False

    has_own_kernel = False

    def __init__(
        self,
        spec: TestbedSpec,
        ansible: Ansible,
        cache_dir: Path,
        state_dir: Path,
        exchange: Exchange | None = None,
    ) -> None:
        """Decide the clock ('auto': KVM and wall time where a boot proved KVM, else instructions).

        exchange: of images with other hosts.
        """
        self.name = spec.name
        self._spec = spec
        self._ansible = ansible
        self._cache, self._exchange = cache_dir, exchange
        self._lock = state_dir / "testbeds" / f"{spec.guest_name}.lock"
        self._prefix = f"{domain_prefix(state_dir)}{spec.guest_name}-"
        choice = spec.variables.clock
        self._kvm = choice != "instructions" and KvmProbe(cache_dir).ask(lambda _: None).works
        self.clock: TestbedClock = choice if choice != "auto" else "wall" if self._kvm else "instructions"

    def give_back(self, progress: Progress) -> None:
        """Do nothing: a guest ends with its boot."""

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot the kernel in a new guest and deploy the job. See `ports.Testbed.boot`."""
        folder = folder.absolute()
        job = with_lab_settings(job, self._spec.variables.environment.settings())
        on_disk = kernel.userspace == "debian"
        machine = self._machine(kernel)
        image = GuestImages(self._cache, job.packages, self._exchange).ensure(progress) if on_disk else None
        with contextlib.ExitStack() as held:
            held.enter_context(exclusive_lock(self._lock, self._refuse_second_trial))
            hypervisor = Hypervisor()
            held.callback(hypervisor.close)
            for name in hypervisor.sweep(self._prefix):
                log.warning("ended the guest %s of a process that was killed", name)
            one = _Boot(hypervisor, kernel, machine, job, folder, progress, awake_seconds())
            progress(f"booting {kernel.release or short_name(kernel.sha)} in a guest")
            if job.counting is not None:
                one = replace(one, counted=self._count(job.counting, one))
            if job.needs.block_device:
                held.enter_context(scratch_file(_scratch_path(folder), job.needs.block_device))
                one = replace(one, job=with_scratch_disk(job, scratch_device(kernel.userspace)))
            session, domain = self._boot_disk(one, image, held) if image else self._boot_serial(one, held)
            kvm = self._kvm and machine.native
            own = {"guest.userspace": kernel.userspace, "guest.kvm": str(kvm).lower()}
            facts = replace(session.facts, facts={**session.facts.facts, **own})
            # Over a serial port the line itself stops the guest between runs.
            suspend = on_disk and self.clock == "instructions"
            return GuestSession(facts, session, domain, suspend, _held=held.pop_all(), counted=one.counted)

    def _count(self, counting: Counting, one: _Boot) -> CountedRuns | None:
        """Return what reads the counts of a boot; None where a monitor asks for what only emulation has."""
        if self.clock == "instructions":
            return CountedRuns(
                counting, one.kernel, self._cache, one.machine, one.folder, warmup=one.job.warmup
            )
        log.warning("a guest with KVM counts nothing: %s", ", ".join(counting.metrics))
        return None

    def _machine(self, kernel: Kernel) -> Machine:
        """Return what the kernel boots on. Raises InfrastructureError if this testbed cannot be that."""
        machine = machine_for(kernel.arch)
        machine.require_emulator()
        if not machine.native and self.clock == "wall":
            raise InfrastructureError(
                f"{kernel.arch} guests are emulated on this machine: their wall clock says nothing",
                cure=f"set the host variable perfbisect_clock of '{self.name}' to instructions",
            )
        return machine

    def _refuse_second_trial(self) -> None:
        raise InfrastructureError(
            f"the testbed '{self.name}' is in use by another trial",
            cure="wait for it to end: 'perfbisect list' shows what is running",
        )

    def _boot_disk(self, one: _Boot, image: GuestImage, held: contextlib.ExitStack) -> tuple[Session, Domain]:
        console = new_console(one.folder)
        held.callback(ConsoleLog(console).join)
        archive: Path | None = None
        if one.kernel.modules is not None and one.kernel.load:
            archive = one.folder / "initramfs"
            data = module_initramfs(one.kernel.modules, one.kernel.load, self._cache, one.machine)
            write_file(archive, data)
            held.callback(archive.unlink, missing_ok=True)
        domain, port = self._start_disk(one, image, console, archive)
        liveness = Liveness(console, domain, always_busy=self._ticks is not None)
        timeout = self._spec.variables.boot_timeout
        with (
            destroying_on_failure(liveness, domain),
            Deployment(
                self._ansible,
                self.name,
                image.ssh_host(LOOPBACK, port, one.folder),
                one.job,
                one.folder,
                one.progress,
                boot_timeout=timeout,
                workdir=self._spec.workdir,
            ) as deployment,
        ):
            wait_for_ssh(liveness, port, CpuDeadline(timeout, liveness.cpu_time, one.started))
            session = deployment.start_session(
                one.kernel,
                crashed=liveness.crashed,
                cpu_time=liveness.cpu_time,
                on_leave=lambda: None,  # GuestSession.leave does it, and knows whether the guest is suspended
                boot_seconds=awake_seconds() - one.started,
                ticks_per_second=self._ticks,
                wall=self.clock == "wall",
                console=console,
            )
        return _with_image(session, image.checksum), domain

    def _boot_serial(self, one: _Boot, held: contextlib.ExitStack) -> tuple[Session, Domain]:
        console = new_console(one.folder)
        held.callback(ConsoleLog(console).join)
        init = first_process(self._cache, one.machine)
        data = initramfs(
            init, one.job, self._spec.workdir, unasked=self._ticks is not None, machine=one.machine
        )
        archive = one.folder / "initramfs"
        write_file(archive, data)
        held.callback(archive.unlink, missing_ok=True)  # the payload is stored once for a bisection
        fifos = FifoLine(one.folder / "serial")
        held.callback(fifos.close)
        userspace = OnSerial(archive, fifos.path)
        domain = self._launch(one, userspace, console)
        liveness = Liveness(console, domain, always_busy=self._ticks is not None)
        with destroying_on_failure(liveness, domain):
            timeout = self._spec.variables.boot_timeout
            session = serial.open_session(
                one.kernel,
                one.job,
                one.folder,
                fifos,
                liveness,
                timeout=timeout,
                started=one.started,
                ticks_per_second=self._ticks,
            )
        return _with_image(session, checksum(init)), domain

    @property
    def _ticks(self) -> float | None:
        return TICKS_PER_SECOND if self.clock == "instructions" else None

    def _start_disk(
        self, one: _Boot, image: GuestImage, console: Path, modules: Path | None
    ) -> tuple[Domain, int]:
        for attempt in range(1, _PORT_TRIES + 1):
            port = _free_port()
            userspace = OnDisk(image.disk.absolute(), port, modules)
            try:
                return self._launch(one, userspace, console), port
            except PortTaken:
                if attempt == _PORT_TRIES:
                    raise
                log.info("port %d was taken by another program; trying the next one", port)
        raise AssertionError("the loop returns or raises")

    def _launch(self, one: _Boot, userspace: OnDisk | OnSerial, console: Path) -> Domain:
        variables = self._spec.variables
        guest = Guest(
            name=f"{self._prefix}{uuid.uuid4().hex[:8]}",
            kernel=one.kernel.image.absolute(),
            userspace=userspace,
            console=console,
            clock=self.clock,
            kvm=self._kvm and one.machine.native,
            machine=one.machine,
            memory_mb=variables.memory_mb,
            cpus=variables.cpus,
            cmdline=(variables.cmdline + boot_parameters(one.job.environment)).strip(),
            label=(os.getuid(), os.getgid()) if one.hypervisor.uri == "qemu:///system" else None,
            scratch=_scratch_path(one.folder) if one.job.needs.block_device else None,
            old=one.kernel.release.startswith("2."),
            plugin=one.counted.argument if one.counted is not None else "",
            confined_by=one.hypervisor.confining_models() if one.counted is not None else (),
        )
        domain = one.hypervisor.start(guest.name, domain_xml(guest))
        # QEMU has the disk open: without a name it is gone with the guest, even if this process is killed.
        _scratch_path(one.folder).unlink(missing_ok=True)
        return domain


@dataclass(frozen=True, slots=True)
class _Boot:
    """The parameters of one boot. started: by `awake_seconds`."""

    hypervisor: Hypervisor
    kernel: Kernel
    machine: Machine
    job: Job
    folder: Path
    progress: Progress
    started: float
    counted: CountedRuns | None = None


def _with_image(session: AgentSession, image: str) -> AgentSession:
    """Return the session with its user space in the facts: samples of two user spaces do not compare."""
    session.facts = replace(session.facts, facts={**session.facts.facts, "image": image})
    return session


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def domain_prefix(state_dir: Path) -> str:
    """Return what the names of all guests of a state folder begin with."""
    digest = hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:8]
    return f"perfbisect-{digest}-"


def _scratch_path(folder: Path) -> Path:
    """Return the file behind a boot's scratch disk."""
    return folder / "scratch.raw"
