"""A guest of this machine as a testbed: libvirt boots the kernel directly, SSH comes in by a forwarded port.

Each boot is a new transient domain on the same read-only disk. What goes wrong is told apart here: a kernel
that panics, hangs or never answers is a `BootFailed`; a guest that somebody killed, or a libvirt that does
not work, is infrastructure.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bisector.adapters.ansible import Ansible
from bisector.adapters.domain_xml import TICKS_PER_SECOND, Guest, domain_xml
from bisector.adapters.endpoint import SSHHost
from bisector.adapters.guest_image import GuestImage, GuestImages
from bisector.adapters.guest_watch import LOOPBACK, Look, fresh_console, wait_for_ssh
from bisector.adapters.kvm_probe import KvmProbe
from bisector.adapters.libvirt_host import Domain, Hypervisor, PortTaken
from bisector.adapters.opening import Opening
from bisector.core.model import TestbedClock
from bisector.errors import InfrastructureError, TestbedLost
from bisector.ports import BootFacts, Job, Kernel, Progress, RunResult, Session
from bisector.spec.lab import TestbedSpec

log = logging.getLogger(__name__)

_PORT_TRIES = 5


class LibvirtTestbed:
    """See `ports.Testbed`. One guest at a time, over all processes of a state folder.

    Guests end with the process that booted them; one that survived even so is ended by the next boot.
    """

    __test__ = False

    def __init__(
        self,
        spec: TestbedSpec,
        ansible: Ansible,
        cache_dir: Path,
        state_dir: Path,
        *,
        uri: str | None = None,
    ) -> None:
        """Decide the clock ('auto': KVM and wall time where a boot proved KVM, else instructions).

        uri: of libvirt; by default the system daemon for root, else the user's own.
        """
        self.name = spec.name
        self._spec = spec
        self._ansible = ansible
        self._cache = cache_dir
        self._uri = uri
        self._lock = state_dir / "testbeds" / f"{_plain(spec.name)}.lock"
        self._prefix = f"{domain_prefix(state_dir)}{_plain(spec.name)}-"
        choice = spec.variables.clock
        self._kvm = choice != "instructions" and KvmProbe(cache_dir).ask(lambda _: None).works
        self.clock: TestbedClock = choice if choice != "auto" else "wall" if self._kvm else "instructions"

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot the kernel in a new guest and deploy the job. See `ports.Testbed.boot`."""
        folder = folder.absolute()
        image = GuestImages(self._cache).ensure(progress)
        with contextlib.ExitStack() as held:
            held.enter_context(_owned(self._lock, self.name))
            hypervisor = Hypervisor(self._uri)
            held.callback(hypervisor.close)
            for name in hypervisor.sweep(self._prefix):
                log.warning("ended the guest %s, a leftover of a process that was killed", name)
            return self._boot(hypervisor, image, kernel, job, folder, progress, held)

    def _boot(
        self,
        hypervisor: Hypervisor,
        image: GuestImage,
        kernel: Kernel,
        job: Job,
        folder: Path,
        progress: Progress,
        held: contextlib.ExitStack,
    ) -> Session:
        """Boot, holding lock and connection; a session that is returned takes them over."""
        started = time.monotonic()
        progress(f"booting {kernel.release or kernel.sha[:12]} in a guest")
        console = fresh_console(folder)
        domain, port = self._start(hypervisor, image, kernel, console)
        look = Look(console, domain)
        opening: Opening | None = None
        try:
            timeout = self._spec.variables.boot_timeout
            opening = Opening(
                self._ansible,
                self.name,
                _ssh_host(image, port, folder),
                job,
                folder,
                progress,
                boot_timeout=timeout,
                workdir=self._spec.workdir,
            )
            wait_for_ssh(look, port, started + timeout, timeout)
            session = opening.ready(
                kernel,
                crashed=look.crashed,
                on_leave=lambda: None,  # GuestSession.leave does it, and knows whether the guest is suspended
                boot_seconds=time.monotonic() - started,
                ticks_per_second=TICKS_PER_SECOND if self.clock == "instructions" else None,
                wall=self.clock == "wall",
                console=console,
            )
        except BaseException as error:
            if opening is not None:
                opening.abandon()
            lost = look.lost() if isinstance(error, InfrastructureError) else None
            domain.destroy()
            if lost is not None and not isinstance(error, TestbedLost):
                raise lost from error
            raise
        own = {"guest.disk": image.checksum, "guest.kvm": str(self._kvm).lower()}
        facts = replace(session.facts, facts={**session.facts.facts, **own})
        return GuestSession(facts, session, domain, racing=self.clock == "instructions", _held=held.pop_all())

    def _start(
        self, hypervisor: Hypervisor, image: GuestImage, kernel: Kernel, console: Path
    ) -> tuple[Domain, int]:
        variables = self._spec.variables
        for attempt in range(1, _PORT_TRIES + 1):
            port = _free_port()
            guest = Guest(
                name=f"{self._prefix}{uuid.uuid4().hex[:8]}",
                kernel=kernel.image.absolute(),
                disk=image.disk.absolute(),
                console=console,
                port=port,
                clock=self.clock,
                kvm=self._kvm,
                memory_mb=variables.memory_mb,
                cpus=variables.cpus,
                cmdline=variables.cmdline,
                label=(os.getuid(), os.getgid()) if hypervisor.uri == "qemu:///system" else None,
            )
            try:
                return hypervisor.start(guest.name, domain_xml(guest)), port
            except PortTaken:
                if attempt == _PORT_TRIES:
                    raise
                log.info("port %d was taken by another program; trying the next one", port)
        raise AssertionError("the loop returns or raises")


@dataclass(slots=True)
class GuestSession:
    """A session that keeps its guest suspended between runs: see domain_xml about sleep=off."""

    facts: BootFacts
    inner: Session
    domain: Domain
    racing: bool
    _held: contextlib.ExitStack
    _suspended: bool = False
    _left: bool = False

    def run(self, index: int) -> RunResult:
        """Resume the guest for one run. Raises as `ports.Session.run`."""
        if self._left:
            raise TestbedLost("the guest of this boot has been ended")
        if self._suspended:
            try:
                self.domain.resume()
            except InfrastructureError as error:
                raise TestbedLost("the suspended guest cannot be resumed", details=error.details) from error
            self._suspended = False
        result = self.inner.run(index)
        if self.racing:
            try:
                self.domain.suspend()
                self._suspended = True
            except InfrastructureError as error:  # it costs host time, no more
                log.warning("%s: %s", error.message, error.details)
        return result

    def leave(self) -> None:
        """End the guest. Never raises."""
        if self._left:
            return
        self._left = True
        self.inner.leave()
        self.domain.destroy()
        self._held.close()


@contextlib.contextmanager
def _owned(path: Path, name: str) -> Iterator[None]:
    """Hold a testbed's lock, which the kernel frees when this process dies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InfrastructureError(
                    f"the testbed '{name}' is in use by another trial",
                    cure="wait for it to end: 'perfbisect list' shows what is running",
                ) from error
            yield
    except OSError as error:
        raise InfrastructureError(f"cannot lock {path}: {error.strerror}") from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _ssh_host(image: GuestImage, port: int, folder: Path) -> SSHHost:
    """Pin the image's host key to the port of this boot."""
    known_hosts = folder / "known_hosts"
    try:
        known_hosts.write_text(f"[{LOOPBACK}]:{port} {image.host_key}\n", encoding="ascii")
    except OSError as error:
        raise InfrastructureError(f"cannot write {known_hosts}: {error.strerror}") from error
    return SSHHost(LOOPBACK, port, "root", image.key.absolute(), known_hosts)


def domain_prefix(state_dir: Path) -> str:
    """Return what the names of all guests of a state folder begin with."""
    digest = hashlib.sha256(str(state_dir.absolute()).encode()).hexdigest()[:8]
    return f"perfbisect-{digest}-"


def _plain(name: str) -> str:
    """Return a testbed's name with nothing that QEMU's or libvirt's syntax could take for its own."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", name)
