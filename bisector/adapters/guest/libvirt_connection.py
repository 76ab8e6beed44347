"""All calls of libvirt: transient domains that are always gone afterwards.

A `Hypervisor` is one connection. Domains are started with auto-destroy, so that libvirt ends them when this
process dies; `Domain.destroy` also ends one whose libvirtd is gone, and `sweep` what both left behind.
"""

from __future__ import annotations

import contextlib
import grp
import logging
import os
import re
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Literal

from bisector.adapters.guest.libvirt_events import watch_events
from bisector.adapters.guest.qemu_processes import is_running, qemu_pids
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.command import run_command
from bisector.adapters.system.processes import kill
from bisector.errors import InfrastructureError

try:
    import libvirt
except ImportError:  # an optional extra: `perfbisect plan` and `simulate` work without
    libvirt = None

log = logging.getLogger(__name__)

End = Literal["shutdown", "destroyed", "crashed", "failed", "lost"]
"""How a domain ended: by itself; by somebody's `destroy`; its QEMU was killed; QEMU gave up; unknown."""

_START_SECONDS = 20.0
"""Timeout until daemons that are started here answer."""

_SYSTEMD = Path("/run/systemd/system")
"""There if systemd, and so udev, runs this machine; not in containers."""

_EVENT_SECONDS = 5.0
"""Until libvirt reports the end of a QEMU that is gone: seconds, where process 1 reaps slowly."""


def default_uri() -> str:
    """Return the system daemon for root, the user's own one for everybody else."""
    return "qemu:///system" if os.geteuid() == 0 else "qemu:///session"


class Hypervisor:
    """A connection to libvirt. Threads may share it."""

    def __init__(self, uri: str | None = None, *, remote: bool = False) -> None:
        """Connect, starting the daemon if that is ours to do. remote: it runs guests on another host.

        Raises InfrastructureError when libvirt-python is not installed or the daemon cannot be reached.
        """
        if libvirt is None:
            raise InfrastructureError("libvirt-python is not installed", cure="perfbisect doctor --fix")
        self.uri, self.remote = uri or default_uri(), remote
        watch_events()
        _share_kvm()
        ensure_libvirtd(self.uri)
        self._connection = _open(self.uri)
        self._ends: dict[str, End] = {}
        self._ended = threading.Condition()
        self._connection.domainEventRegisterAny(
            None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_event, None
        )

    def close(self) -> None:
        """Close the connection; its domains end. Never raises."""
        with contextlib.suppress(libvirt.libvirtError):
            self._connection.close()

    def alive(self) -> bool:
        """Say whether libvirtd still answers on this connection."""
        with contextlib.suppress(libvirt.libvirtError):
            return bool(self._connection.isAlive()) and self._connection.getLibVersion() > 0
        return False

    def confining_models(self) -> tuple[str, ...]:
        """Return the security models that say which files a guest's QEMU may open ('apparmor', 'selinux')."""
        models: list[str] = re.findall(r"<model>([a-z]+)</model>\s*<doi>", self._capabilities())
        return tuple(model for model in models if model not in ("dac", "none"))

    def architecture(self) -> str:
        """Return the architecture of the host's processor, as `Machine.guest` names it."""
        found = re.search(r"<host>.*?<cpu>\s*<arch>(\w+)</arch>", self._capabilities(), re.DOTALL)
        if found is None:
            raise InfrastructureError("libvirt does not tell what its host's processor is")
        return found[1]

    def _capabilities(self) -> str:
        try:
            return str(self._connection.getCapabilities())
        except libvirt.libvirtError as error:
            raise InfrastructureError("libvirt does not tell what it can", details=str(error)) from error

    def start(self, name: str, xml: str) -> Domain:
        """Start a transient domain. Raises PortTaken, or InfrastructureError with QEMU's own words."""
        try:
            handle = self._connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY)
        except libvirt.libvirtError as error:
            text = str(error)
            if "Could not set up host forwarding rule" in text:
                raise PortTaken("the port chosen for a guest was taken meanwhile", details=text) from error
            raise InfrastructureError(
                "libvirt cannot start the guest", details=text, cure="run 'perfbisect doctor'"
            ) from error
        return Domain(self, name, handle)

    def sweep(self, prefix: str) -> list[str]:
        """End all domains whose name starts with `prefix`; return their names."""
        gone = []
        try:
            for handle in self._connection.listAllDomains():
                if handle.name().startswith(prefix):
                    gone.append(handle.name())
                    Domain(self, handle.name(), handle).destroy()
        except libvirt.libvirtError as error:
            raise InfrastructureError("libvirt does not list its domains", details=str(error)) from error
        for pid in self.pids(prefix):  # libvirtd forgot them, as after its state folder was removed
            kill(pid)
        return gone

    def pids(self, prefix: str) -> list[int]:
        """Return the QEMU processes of this host with this name or prefix; none of guests of another one."""
        return [] if self.remote else qemu_pids(prefix)

    def end_of(self, name: str, wait: float = 0.0) -> End | None:
        """Return how a domain ended, None if no event said so within `wait` seconds."""
        with self._ended:
            self._ended.wait_for(lambda: name in self._ends, wait)
            return self._ends.get(name)

    def _on_event(self, _: Any, domain: Any, event: int, detail: int, __: Any) -> None:  # noqa: ANN401
        if event != libvirt.VIR_DOMAIN_EVENT_STOPPED:
            return
        ends: dict[int, End] = {
            libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN: "shutdown",
            libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED: "destroyed",
            libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED: "crashed",
            libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED: "failed",
        }
        with self._ended:
            self._ends[domain.name()] = ends.get(detail, "lost")
            self._ended.notify_all()


class PortTaken(InfrastructureError):
    """Another program took the port between our choice and QEMU's start; worth another try."""


class Domain:
    """One running guest."""

    def __init__(self, hypervisor: Hypervisor, name: str, handle: Any) -> None:  # noqa: ANN401 - virDomain
        self._hypervisor = hypervisor
        self.name = name
        self._handle = handle
        self._suspended = False

    def ended(self) -> End | None:
        """Return how the guest ended, None while its QEMU runs; here that needs no libvirtd."""
        if self._hypervisor.pids(self.name):
            return None
        if self._hypervisor.remote:
            with contextlib.suppress(libvirt.libvirtError):
                if self._handle.isActive():
                    return None
        return self._hypervisor.end_of(self.name, _EVENT_SECONDS) or "lost"

    def cpu_seconds(self) -> float | None:
        """Return the CPU seconds of this host that the guest has used, None if libvirt does not know."""
        with contextlib.suppress(libvirt.libvirtError):
            return int(self._handle.info()[4]) / 1e9
        return None

    def paused(self) -> str | None:
        """Return why the guest stands still, in libvirt's words; None while it runs, or if we suspended it.

        None also where libvirt does not say it.
        """
        if self._suspended:
            return None
        with contextlib.suppress(libvirt.libvirtError):
            state, reason = self._handle.state()
            if state == libvirt.VIR_DOMAIN_PAUSED:
                return {
                    libvirt.VIR_DOMAIN_PAUSED_IOERROR: "I/O error",
                    libvirt.VIR_DOMAIN_PAUSED_USER: "user",
                    libvirt.VIR_DOMAIN_PAUSED_SAVE: "saving",
                    libvirt.VIR_DOMAIN_PAUSED_DUMP: "dumping",
                    libvirt.VIR_DOMAIN_PAUSED_SNAPSHOT: "creating snapshot",
                }.get(reason, f"reason {reason} of virDomainPausedReason")
        return None

    def suspend(self) -> None:
        """Stop the guest's CPUs and clock. Raises InfrastructureError."""
        try:
            self._handle.suspend()
            self._suspended = True
        except libvirt.libvirtError as error:
            raise InfrastructureError("libvirt cannot suspend the guest", details=str(error)) from error

    def resume(self) -> None:
        """Let a suspended guest run on. Raises InfrastructureError."""
        try:
            self._handle.resume()
            self._suspended = False
        except libvirt.libvirtError as error:
            raise InfrastructureError("libvirt cannot resume the guest", details=str(error)) from error

    def destroy(self) -> None:
        """End the guest, through libvirt or, if that does not work, by killing its QEMU. Never raises."""
        try:
            self._handle.destroy()
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                log.warning("libvirt does not end the guest %s (%s); killing it", self.name, error)
        try:
            for pid in self._hypervisor.pids(self.name):
                kill(pid)
        except InfrastructureError as error:
            log.warning("the guest %s may still run: %s", self.name, error)


def ensure_libvirtd(uri: str) -> None:
    """Make sure that a daemon answers at `uri`; start it where no service manager does.

    A session daemon starts itself. Raises InfrastructureError with the command that mends it.
    """
    if (
        libvirt is None
        or uri != "qemu:///system"
        or (Path("/run/libvirt/libvirt-sock").exists() and _answers(uri))
    ):
        return
    if os.geteuid() != 0 or shutil.which("libvirtd") is None:
        return  # `_open` says what is wrong
    if _SYSTEMD.exists():
        run_command(["systemctl", "start", "libvirtd"], check=False, timeout=_START_SECONDS)
        return
    Path("/run/libvirt").mkdir(exist_ok=True)
    for daemon in ("virtlogd", "libvirtd"):
        if not is_running(daemon):
            log.info("starting %s", daemon)
            run_command([daemon, "-d"], timeout=_START_SECONDS)
    deadline = awake_seconds() + _START_SECONDS
    while not _answers(uri) and awake_seconds() < deadline:
        time.sleep(0.1)


def _share_kvm() -> None:
    """Give /dev/kvm the group and mode that udev would, where there is neither udev nor systemd.

    libvirt starts QEMU's probe as root but asks whether its own user may open /dev/kvm. Where the answers
    differ it discards its cached QEMU capabilities at every query: 80 s a boot instead of 0.3.
    """
    device = Path("/dev/kvm")
    if os.geteuid() != 0 or _SYSTEMD.exists() or not device.exists() or device.stat().st_mode & 0o066:
        return
    with contextlib.suppress(KeyError, OSError):
        os.chown(device, -1, grp.getgrnam("kvm").gr_gid)
        device.chmod(0o660)


def _answers(uri: str) -> bool:
    try:
        connection = libvirt.openReadOnly(uri)
    except libvirt.libvirtError:
        return False
    connection.close()
    return True


def _open(uri: str) -> Any:  # noqa: ANN401 - virConnect
    try:
        return libvirt.open(uri)
    except libvirt.libvirtError as error:
        cure = "install libvirt-daemon-system and start it: 'systemctl start libvirtd'; "
        cure += "without systemd: 'virtlogd -d && libvirtd -d'"
        if uri == "qemu:///session":  # libvirt starts it, in folders of the user
            cure = "log in anew, or 'unset XDG_RUNTIME_DIR', where it names a folder of another user ('su' "
            cure += "without '-' leaves it so); HOME must be yours and writable; or 'perfbisect doctor --fix'"
        message = f"libvirt does not answer at {uri}"
        raise InfrastructureError(message, details=str(error), cure=cure) from error
