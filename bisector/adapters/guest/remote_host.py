"""A host of guests elsewhere, `qemu+ssh://`: files go there; libvirt, console and the guest's SSH come here.

All of it goes through OpenSSH with the key and the pinned host key of the inventory. Guests listen on the
loopback of their host alone. Whatever is started here ends when this process does, also by kill -9: each ssh
has a pipe as its input, and its command there ends with it; libvirt then destroys the guest (auto-destroy).
"""

from __future__ import annotations

import contextlib
import platform
import shlex
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.system.architectures import Machine, machine_for
from bisector.adapters.system.command import PIPE, end_process, run_command, start_process
from bisector.adapters.system.files import os_errors_reported, sha256_of
from bisector.adapters.system.ssh import SSH
from bisector.adapters.system.ssh_endpoint import LIBVIRT_SOCKET, SSHHost
from bisector.errors import InfrastructureError
from bisector.model.goal import TestbedClock
from bisector.ports import Job, Kernel

_FOLDER = PurePosixPath("/var/lib/perfbisect-guests")
"""There: `files` of kernels and images by their checksums, `boots` with what one boot has."""

_LOGIN_SECONDS = 60.0
_SEND_SECONDS = 3600.0
"""Timeouts: of one login on a busy host; of a guest image of 2 GB over a line of 1 MB/s, compressed."""

_TOUCH_SECONDS = 3600.0
"""How often the folder of a boot is touched: after a day without that it is removed as left behind."""

_GREETING = 1000, 1000
"""Most lines, and characters of each, that the shell there may print before a command: far above any
greeting."""

_SHOWN_BYTES = 2000
"""Bytes of ssh's messages that an error quotes: more than it prints when it fails."""

_KEPT_FILES = 12
"""Kernels and images that stay there for the next boot: a comparison goes back and forth between a few."""

_RECEIVE = (
    'umask 077 && mkdir -p "${1%/*}" && dd of="$1.$$" bs=1M conv=sparse iflag=fullblock status=none && '
    '[ "$(sha256sum <"$1.$$" | cut -c 1-64)" = "$2" ] && mv "$1.$$" "$1" || { rm -f "$1.$$"; exit 1; }'
)
_LOOK = (
    'cd "$1/files" 2>/dev/null || exit 1; [ ! -f "$2" ] || touch "$2"; '
    f'ls -t | tail -n +{_KEPT_FILES + 1} | xargs -r rm -f; [ -f "$2" ]'
)
_BEGIN = (
    'umask 077; find "${1%/*}" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} + 2>/dev/null; '
    'mkdir -p "$1" && [ -S "$2" ]'
)  # also removes, after a day, what killed processes left
_FOLLOW = (
    'touch "$1"; tail -n +1 -F "$1" 2>/dev/null & '
    'while touch -c "${1%/*}"; timeout "$2" cat >/dev/null; [ $? -eq 124 ]; do :; done; kill $!'
)  # the touch is needed as a folder's time does not follow its files'; 124: timeout ended cat, go on
_READY = "echo; echo ready; cat"  # what a shell prints before may have no end of line


def refuse_what_is_local(testbed: str, host: SSHHost, kernel: Kernel, job: Job, clock: TestbedClock) -> None:
    """Raise InfrastructureError for what only guests of this machine do. clock: the testbed's."""
    wrong = ""
    if kernel.userspace != "debian":
        wrong = "kernels that boot with an initramfs alone run in guests of this machine"
    elif not machine_for(kernel.arch).native:
        wrong = f"their image is made here, of {platform.machine()} programs, and the kernel is {kernel.arch}"
    elif clock == "instructions" and job.counting is not None and job.counting.needed:
        wrong = "what QEMU counts is counted in guests of this machine"
    if wrong:
        raise InfrastructureError(
            f"the testbed '{testbed}' is a guest of {host}: {wrong}",
            cure="name another testbed: 'perfbisect lab list' shows them",
        )


@dataclass(frozen=True, slots=True)
class RemoteBoot:
    """One boot there. hypervisor: its libvirt; port: of this loopback, leads to `there`, a port of the host's
    loopback, which leads to the guest's SSH.
    """

    host: SSHHost
    hypervisor: Hypervisor
    port: int
    there: int
    folder: PurePosixPath

    @property
    def console(self) -> Path:
        """Where QEMU writes the console, there."""
        return Path(self.folder / "console.log")

    def require_native(self, machine: Machine) -> None:
        """Raise InfrastructureError where guests are emulated, whose wall clock says nothing."""
        there = self.hypervisor.architecture()
        if there != machine.guest:
            raise InfrastructureError(
                f"{self.host} is {there}: its {machine.arch} guests are emulated",
                details="their wall clock says nothing",
                cure="set the testbed's host variable perfbisect_clock to instructions",
            )

    def put(self, path: Path) -> Path:
        """Return where a file is there; it is sent if it is not. Raises InfrastructureError."""
        with os_errors_reported(f"cannot read {path}"):
            checksum = sha256_of(path)
        target = _FOLDER / "files" / checksum
        with SSH(self.host, login_timeout=_LOGIN_SECONDS) as ssh:
            if ssh.run(["sh", "-c", _LOOK, "sh", str(_FOLDER), checksum], check=False).code == 0:
                return Path(target)
        with os_errors_reported(f"cannot read {path}"), path.open("rb") as file:
            command = ["sh", "-c", _RECEIVE, "sh", str(target), checksum]
            words = _ssh(self.host, ["-C"], command)
            done = run_command(words, stdin=file.fileno(), timeout=_SEND_SECONDS, check=False)
        if done.code != 0:
            raise InfrastructureError(
                f"{path.name} did not arrive whole at {self.host}",
                details=done.output[-2000:],
                cure=f"make room in {_FOLDER} there",
            )
        return Path(target)

    def scratch(self, size: int) -> Path:
        """Make an empty file for the workload's disk there; it goes with the boot."""
        path = self.folder / "scratch.raw"
        with SSH(self.host, login_timeout=_LOGIN_SECONDS) as ssh:
            ssh.run(["truncate", "-s", str(size), str(path)])
        return Path(path)

    @contextlib.contextmanager
    def followed(self, console: Path) -> Iterator[Callable[[], str | None]]:
        """Have what QEMU writes to the console appear in a file here, too.

        Gives what tells why that has ended, in ssh's words, or None while it goes on.
        """
        with tempfile.TemporaryFile() as errors:  # what ssh says is no word of the kernel
            with os_errors_reported(f"cannot write {console}"), console.open("ab") as file:
                command = _ssh(
                    self.host, [], ["sh", "-c", _FOLLOW, "sh", str(self.console), str(_TOUCH_SECONDS)]
                )
                follower = start_process(command, stdin=PIPE, stdout=file.fileno(), stderr=errors.fileno())

            def why_ended() -> str | None:
                if follower.poll() is None:
                    return None
                return _read_errors(errors) or f"ssh to {self.host} ended with code {follower.returncode}"

            try:
                yield why_ended
            finally:
                end_process(follower)


@contextlib.contextmanager
def remote_boot(host: SSHHost, port: int, there: int) -> Iterator[RemoteBoot]:
    """Connect to a host's libvirt for one boot, and open the way to the guest. port, there: see RemoteBoot.

    Raises InfrastructureError: the host does not answer or is not who it should be; no libvirt runs there.
    """
    folder = _FOLDER / "boots" / uuid.uuid4().hex[:12]
    with SSH(host, login_timeout=_LOGIN_SECONDS) as ssh:  # says best what is wrong with a key
        made = ssh.run(["sh", "-c", _BEGIN, "sh", str(folder), LIBVIRT_SOCKET], check=False)
        if made.code != 0:
            raise InfrastructureError(
                f"libvirt does not run on {host}, or {folder} cannot be made there",
                details=made.output,
                cure=f"start libvirtd there: it needs {LIBVIRT_SOCKET}; and make room in {_FOLDER}",
            )
    with tempfile.TemporaryDirectory(prefix="pb-libvirt-") as here:
        socket = Path(here) / "socket"
        forwards = ["-L", f"{socket}:{LIBVIRT_SOCKET}", "-L", f"127.0.0.1:{port}:127.0.0.1:{there}"]
        with _tunnel(host, forwards):
            hypervisor = Hypervisor(f"qemu+unix:///system?socket={socket}", remote=True)
            try:
                yield RemoteBoot(host, hypervisor, port, there, folder)
            finally:
                hypervisor.close()
                with contextlib.suppress(InfrastructureError), SSH(host, login_timeout=_LOGIN_SECONDS) as ssh:
                    ssh.run(["rm", "-rf", str(folder)])


@contextlib.contextmanager
def _tunnel(host: SSHHost, forwards: Sequence[str]) -> Iterator[None]:
    """Keep ports open for as long as the block lasts. Raises InfrastructureError."""
    with tempfile.TemporaryFile() as errors:  # a warning is no answer
        command = _ssh(host, forwards, ["sh", "-c", _READY])
        tunnel = start_process(command, stdin=PIPE, stderr=errors.fileno())
        try:
            greeting = _greeting(tunnel.stdout, tunnel.kill)
            if greeting is not None:
                end_process(tunnel)
                words = f"{greeting[-_SHOWN_BYTES:]}\n{_read_errors(errors)}".strip()
                raise InfrastructureError(
                    f"no tunnel to {host} could be opened",
                    details=words or f"ssh ended with code {tunnel.returncode}",
                )
            yield
        finally:
            end_process(tunnel)


def _greeting(output: IO[str] | None, kill: Callable[[], None]) -> str | None:
    """Read up to the line 'ready'; return what came instead until the end, the deadline or a limit.

    kill: ends the output, at the deadline.
    """
    assert output is not None
    late = threading.Timer(_LOGIN_SECONDS, kill)
    late.start()
    lines, characters = _GREETING
    greeting = ""
    try:
        for _ in range(lines):
            line = output.readline(characters)
            if line == "ready\n":
                return None
            if not line:
                break
            greeting += line
    finally:
        late.cancel()
    return greeting


def _read_errors(errors: IO[bytes]) -> str:
    errors.seek(0)
    return errors.read(_SHOWN_BYTES).decode(errors="replace").strip()


def _ssh(host: SSHHost, options: Sequence[str], command: Sequence[str]) -> list[str]:
    pinned = [
        *("-o", f"UserKnownHostsFile={host.known_hosts}", "-o", "GlobalKnownHostsFile=/dev/null"),
        *("-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"),
        *("-o", "ExitOnForwardFailure=yes", "-o", "ControlPath=none", "-o", "LogLevel=ERROR"),
        *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "-o", "StreamLocalBindMask=0177"),
    ]
    where = ["-i", str(host.key), "-p", str(host.port), f"{host.user}@{host.address}"]
    return ["ssh", *pinned, *options, *where, shlex.join(command)]
