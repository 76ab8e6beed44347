"""A real OpenSSH server on a loopback port, with its own keys, for one test module."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.system.ssh_endpoint import SSHHost
from tests.support.servers.free_port import free_port, is_open
from tests.support.waiting import until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")

CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PidFile none
"""


@dataclass
class Server:
    """The running server, and how to cut its connections."""

    host: SSHHost
    process: subprocess.Popen[bytes]

    def cut(self) -> None:
        """End every open connection, but not the server: as a dying machine does."""
        for pid in self.connections():
            os.kill(pid, signal.SIGKILL)

    def connections(self) -> list[int]:
        """Process ids of the open connections."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def with_(self, **changes: Any) -> SSHHost:
        return replace(self.host, **changes)


def keygen(path: Path, kind: str = "ed25519") -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)


def known(path: Path, port: int, public: Path) -> None:
    kind, key = public.read_text().split()[:2]
    path.write_text(f"[127.0.0.1]:{port} {kind} {key}\n")


def serve(folder: Path) -> Iterator[Server]:
    """Yield the server and end it afterwards; skip where it cannot run. folder: for its keys and its log."""
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("needs root and the Debian package openssh-server")
    keygen(folder / "host_key")
    keygen(folder / "key")
    port = free_port()
    known(folder / "known_hosts", port, folder / "host_key.pub")
    (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder))
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen(
        [SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")], start_new_session=True
    )
    host = SSHHost("127.0.0.1", port, "root", folder / "key", folder / "known_hosts")
    until(lambda: is_open(port), 60, every=0.05)
    autogroup = Path("/proc/sys/kernel/sched_autogroup_enabled")
    before = autogroup.read_text() if autogroup.exists() else ""
    yield Server(host, process)
    process.terminate()
    process.wait(10)
    if before:
        autogroup.write_text(before)  # a deployed workload has switched it off, as it should on a testbed
