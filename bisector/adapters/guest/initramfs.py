"""The user space of guests whose kernels are older than any distribution: one small initramfs a job.

It holds an own first process (files/console_init.c, a static program), the devices it needs, and the job's
payload with the measuring agent.
"""

from __future__ import annotations

import hashlib
import shlex
import stat
from pathlib import Path

from bisector.adapters.agent.payload import PREPARE, agent_command, agent_files
from bisector.adapters.guest.cpio import ArchiveEntry, cpio, file, folder
from bisector.adapters.guest.static_program import compile_static
from bisector.adapters.system.architectures import X86_64, Machine
from bisector.adapters.system.files import os_errors_reported
from bisector.ports import Job

_START = "perfbisect.start"
"""The instructions of the first process; their form is in its source."""

_DEVICES = (
    # name, type, major, minor: Documentation/admin-guide/devices.txt
    ("console", stat.S_IFCHR | 0o600, 5, 1),
    ("null", stat.S_IFCHR | 0o666, 1, 3),
    ("zero", stat.S_IFCHR | 0o666, 1, 5),
    ("full", stat.S_IFCHR | 0o666, 1, 7),
    ("random", stat.S_IFCHR | 0o666, 1, 8),
    ("urandom", stat.S_IFCHR | 0o666, 1, 9),
    ("kmsg", stat.S_IFCHR | 0o600, 1, 11),
    ("ttyS0", stat.S_IFCHR | 0o600, 4, 64),
    ("ttyS1", stat.S_IFCHR | 0o600, 4, 65),
    ("ram0", stat.S_IFBLK | 0o600, 1, 0),
    ("ram1", stat.S_IFBLK | 0o600, 1, 1),
)
"""RAM disks are in no table before their first use; the first process finds other disks."""

_AGENT_PORT = "ttyS1"
"""The first process's name for the agent's port, whatever terminal the machine has there."""


def first_process(cache: Path, machine: Machine) -> bytes:
    """Return the first process as a program. Raises InfrastructureError."""
    return compile_static("console_init.c", cache, machine)


def initramfs(init: bytes, job: Job, workdir: str, *, unasked: bool, machine: Machine = X86_64) -> bytes:
    """Return the archive for a job that is to run in the folder `workdir` of the guest.

    unasked: the agent runs the workload again and again by itself (`agent serve --unasked`).
    """
    work = workdir.strip("/")
    folders = [str(parent) for parent in reversed(Path(work).parents) if str(parent) != "."]
    entries = [
        *(folder(name) for name in ("dev", "proc", "sys", "tmp", *folders, work)),
        *(
            ArchiveEntry(
                f"dev/{name}", mode, device=machine.line.number if name == _AGENT_PORT else (major, minor)
            )
            for name, mode, major, minor in _DEVICES
        ),
        file("init", init, executable=True),
        file(_START, _start(job, workdir, unasked)),
    ]
    with os_errors_reported(f"cannot read the workload in {job.payload}"):
        for path in sorted(job.payload.rglob("*")):
            name = f"{work}/{path.relative_to(job.payload)}"
            if path.is_dir():
                entries.append(folder(name))
            else:
                # The file's bits, not os.access: nothing may be executed here where it is mounted noexec.
                executable = bool(path.stat().st_mode & 0o111)
                entries.append(file(name, path.read_bytes(), executable=executable))
    entries += [file(f"{work}/{name}", data) for name, data in agent_files(job).items()]
    return cpio(entries)


def checksum(init: bytes) -> str:
    """Return a digest of this user space (SHA-256, hex); the payload has its own."""
    return hashlib.sha256(init + repr(_DEVICES).encode()).hexdigest()


def _start(job: Job, workdir: str, unasked: bool) -> bytes:
    serve = agent_command(job)
    if unasked:
        rests = f"{round(job.settle * 1000)}:{round(job.pause * 1000)}"
        serve[2:2] = ["--unasked", rests]
    texts = [workdir]
    for command in (shlex.split(PREPARE), serve):
        texts += [str(len(command)), *command]
    return b"".join(text.encode() + b"\0" for text in texts)
