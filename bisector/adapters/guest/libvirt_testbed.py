"""A guest as a testbed: libvirt boots the kernel directly, on this machine or on another (`remote_host`).

Each boot is a new transient domain. The kernel says which user space it can carry: a distribution's on a
read-only disk, reached by SSH through a forwarded port, or an initramfs that is driven over a serial port
(`serial`). A kernel that panics, hangs or never answers raises `BootFailed`. A guest that somebody killed, or
a libvirt that does not work, raises InfrastructureError.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.agent.deploy import Deployment
from bisector.adapters.agent.payload import with_lab_settings
from bisector.adapters.agent.scratch_disk import scratch_file, with_scratch_disk
from bisector.adapters.agent.session import AgentSession
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.guest import serial
from bisector.adapters.guest.channel_fifo import FifoLine
from bisector.adapters.guest.counting.counted_runs import CountedRuns
from bisector.adapters.guest.domain_xml import (
    TICKS_PER_SECOND,
    OnSerial,
    scratch_device,
)
from bisector.adapters.guest.guest_launch import GuestBoot, free_port, launch, scratch_path, start_on_disk
from bisector.adapters.guest.guest_session import GuestSession, destroying_on_failure
from bisector.adapters.guest.initramfs import checksum, first_process, initramfs
from bisector.adapters.guest.kvm_probe import KvmProbe
from bisector.adapters.guest.libvirt_connection import Domain, Hypervisor
from bisector.adapters.guest.liveness import LOOPBACK, Liveness, new_console, wait_for_ssh
from bisector.adapters.guest.module_initramfs import module_initramfs
from bisector.adapters.guest.remote_host import refuse_what_is_local, remote_boot
from bisector.adapters.guest.rootfs import GuestImage, GuestImages
from bisector.adapters.system.architectures import Machine, machine_for
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.console_log import ConsoleLog
from bisector.adapters.system.files import exclusive_lock, write_file
from bisector.adapters.system.ssh_endpoint import libvirt_host
from bisector.errors import InfrastructureError
from bisector.model.commit_graph import short_name
from bisector.model.goal import TestbedClock
from bisector.ports import Counting, Job, Kernel, Progress, Session
from bisector.schemas.lab import TestbedSpec

log = logging.getLogger(__name__)


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
        self._host = libvirt_host(spec)
        if self._host is not None:  # KVM is not probed there: the inventory says whether it works
            self._prefix = f"{domain_prefix(state_dir, socket.gethostname())}{spec.guest_name}-"
            self._kvm = choice == "wall"
        else:
            self._kvm = choice != "instructions" and KvmProbe(cache_dir).ask(lambda _: None).works
        self.clock: TestbedClock = choice if choice != "auto" else "wall" if self._kvm else "instructions"
        self._uncounted = ""
        """Why guests here count nothing, once that is known."""

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        """Do nothing: a guest ends with its boot."""

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot the kernel in a new guest and deploy the job. See `ports.Testbed.boot`."""
        folder = folder.absolute()
        job = with_lab_settings(job, self._spec.variables.environment.settings())
        on_disk = kernel.userspace == "debian"
        machine = self._machine(kernel, job)
        image = GuestImages(self._cache, job.packages, self._exchange).ensure(progress) if on_disk else None
        with contextlib.ExitStack() as held:
            held.enter_context(exclusive_lock(self._lock, self._refuse_second_trial))
            far = None
            if self._host is not None:
                far = held.enter_context(remote_boot(self._host, free_port(), free_port()))
                if self.clock == "wall":
                    far.require_native(machine)
            hypervisor = far.hypervisor if far is not None else Hypervisor()
            held.callback(hypervisor.close)
            for name in hypervisor.sweep(self._prefix):
                log.warning("ended the guest %s of a process that was killed", name)
            kvm = self._kvm  # then the kernel is one of its host's architecture: `_machine`, `require_native`
            one = GuestBoot(
                *(self._spec.variables, self._prefix, self.clock, kvm, hypervisor, kernel, machine, job),
                *(folder, progress),
                far=far,
            )
            progress(f"booting {kernel.release or short_name(kernel.sha)} in a guest")
            if job.counting is not None:
                one = replace(one, counted=self._count(job.counting, one))
            if job.needs.block_device:
                if far is None:
                    held.enter_context(scratch_file(scratch_path(folder), job.needs.block_device))
                one = replace(one, job=with_scratch_disk(job, scratch_device(kernel.userspace)))
            session, domain = self._boot_disk(one, image, held) if image else self._boot_serial(one, held)
            own = {"guest.userspace": kernel.userspace, "guest.kvm": str(kvm).lower()}
            profiled = one.counted is not None and job.counting is not None and job.counting.profile
            facts = replace(session.facts, facts={**session.facts.facts, **own}, profiled=profiled)
            # Over a serial port the line itself stops the guest between runs.
            suspend = on_disk and self.clock == "instructions"
            return GuestSession(
                *(facts, session, domain, suspend, held.pop_all(), one.counted),
                metrics=job.metrics,
                needed=bool(job.counting and job.counting.needed),
                uncounted=self._uncounted,
                module_symbols=session.module_symbols,
            )

    def _count(self, counting: Counting, one: GuestBoot) -> CountedRuns | None:
        """Return what reads the counts of a boot; None where there are none, and none is needed.

        Raises InfrastructureError where one is needed.
        """
        if self.clock == "wall":
            self._uncounted = "only an emulated guest (clock 'instructions') counts"
        elif one.far is not None:
            self._uncounted = "only guests of this machine count"
        elif not self._uncounted or counting.needed:
            try:
                return CountedRuns(
                    *(counting, one.kernel, self._cache, one.machine, one.folder, one.job.payload),
                    warmup=one.job.warmup,
                    cmdline=one.cmdline,
                )
            except InfrastructureError as error:
                if counting.needed:
                    raise
                self._uncounted = error.message
                log.warning("nothing is counted on '%s': %s", self.name, error.message)
        return None

    def _machine(self, kernel: Kernel, job: Job) -> Machine:
        """Return what the kernel boots on. Raises InfrastructureError if this testbed cannot be that."""
        machine = machine_for(kernel.arch)
        if self._host is not None:  # what it is, its libvirt says
            refuse_what_is_local(self.name, self._host, kernel, job, self.clock)
            return machine
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

    def _boot_disk(
        self, one: GuestBoot, image: GuestImage, held: contextlib.ExitStack
    ) -> tuple[AgentSession, Domain]:
        console = new_console(one.folder)
        held.callback(ConsoleLog(console).join)
        archive: Path | None = None
        if one.kernel.modules is not None and one.kernel.load:
            archive = one.folder / "initramfs"
            data = module_initramfs(one.kernel.modules, one.kernel.load, self._cache, one.machine)
            write_file(archive, data)
            held.callback(archive.unlink, missing_ok=True)
        guest, port = start_on_disk(one, image, console, archive)
        domain = guest.domain
        liveness = Liveness(console, domain, always_busy=self._ticks is not None, stop=self._is_stopped)
        if one.far is not None:
            liveness.console_ended = held.enter_context(one.far.followed(console))
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
            wait_for_ssh(liveness, port, CpuDeadline(timeout, liveness.cpu_time, guest.started))
            session = deployment.start_session(
                one.kernel,
                crashed=liveness.crashed,
                cpu_time=liveness.cpu_time,
                paused=liveness.paused,
                on_leave=lambda: None,  # GuestSession.leave does it, and knows whether the guest is suspended
                boot_seconds=awake_seconds() - guest.started,
                ticks_per_second=self._ticks,
                wall=self.clock == "wall",
                console=console,
            )
        return _with_image(session, image.checksum), domain

    def _boot_serial(self, one: GuestBoot, held: contextlib.ExitStack) -> tuple[AgentSession, Domain]:
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
        guest = launch(one, userspace, console)
        domain = guest.domain
        liveness = Liveness(console, domain, always_busy=self._ticks is not None, stop=self._is_stopped)
        with destroying_on_failure(liveness, domain):
            timeout = self._spec.variables.boot_timeout
            session = serial.open_session(
                one.kernel,
                one.job,
                one.folder,
                fifos,
                liveness,
                timeout=timeout,
                started=guest.started,
                ticks_per_second=self._ticks,
            )
        return _with_image(session, checksum(init)), domain

    def _is_stopped(self) -> bool:
        return self._ansible.stop is not None and self._ansible.stop()

    @property
    def _ticks(self) -> float | None:
        return TICKS_PER_SECOND if self.clock == "instructions" else None


def _with_image(session: AgentSession, image: str) -> AgentSession:
    """Return the session with its user space in the facts: samples of two user spaces do not compare."""
    session.facts = replace(session.facts, facts={**session.facts.facts, "image": image})
    return session


def domain_prefix(state_dir: Path, host: str = "") -> str:
    """Return what the names of all guests of a state folder begin with. host: whose folder, for others."""
    digest = hashlib.sha256(f"{host}{state_dir.resolve()}".encode()).hexdigest()[:8]
    return f"perfbisect-{digest}-"
