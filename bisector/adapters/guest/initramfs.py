"""The user space of guests whose kernels are older than any distribution: one small initramfs a job.

It holds an own first process (`guest/console_init.c`, a static program), the devices it needs, and the job's
payload with the measuring agent. A "newc" cpio archive as the kernel reads it
(Documentation/early-userspace/buffer-format.txt), uncompressed: every kernel since 2.6.13 takes that,
whatever decompressors it was built with.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.agent.payload import PREPARE, agent_command, agent_files
from bisector.adapters.system.architectures import X86_64, Machine
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import replacing
from bisector.errors import InfrastructureError
from bisector.ports import Job

_SOURCE = Path(__file__).parent / "files" / "console_init.c"

_COMPILE_SECONDS = 120.0

_START = "perfbisect.start"
"""What the first process is told to do; see its source."""

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
"""RAM disks stand in no table before they are used; other disks are found by the first process."""

_LINE = "ttyS1"
"""What the first process calls the port of the agent, whatever terminal a machine has there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an archive. mode: with the type's bits; data: of a file; device: major and minor."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def cpio(entries: Sequence[Entry]) -> bytes:
    """Return a newc archive. Owners are root, times zero: the same entries give the same bytes."""
    out = bytearray()
    for number, entry in enumerate((*entries, Entry("TRAILER!!!", 0)), start=1):
        name = entry.name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(entry.mode) else 1
        fields = (
            *(number, entry.mode, 0, 0, links, 0, len(entry.data)),
            *(0, 0, *entry.device, len(name), 0),
        )
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += b"\0" * (-len(out) % 4)
        out += entry.data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


def first_process(cache: Path, machine: Machine) -> bytes:
    """Return the first process, compiled once a version of its source. Raises InfrastructureError."""
    return compiled(_SOURCE, "console-init", cache, machine)


def compiled(source: Path, name: str, cache: Path, machine: Machine) -> bytes:
    """Return a static program from one C file, compiled once a version of it. Raises InfrastructureError."""
    command = [*machine.compiler(), "-Os", "-s", "-Wall"]
    key = hashlib.sha256(" ".join(command).encode() + source.read_bytes()).hexdigest()[:16]
    program = cache / "images" / f"{name}-{key}"
    try:
        if not program.is_file():
            with replacing(program) as partial:
                run_command([*command, "-o", partial, source], timeout=_COMPILE_SECONDS)
        return program.read_bytes()
    except OSError as error:
        raise InfrastructureError(f"cannot keep a guest's program in {program}: {error.strerror}") from error


def initramfs(init: bytes, job: Job, workdir: str, *, unasked: bool, machine: Machine = X86_64) -> bytes:
    """Return the archive for a job that is to run in the folder `workdir` of the guest.

    unasked: the agent runs the workload again and again by itself (`agent serve --unasked`).
    """
    work = workdir.strip("/")
    folders = [str(parent) for parent in reversed(Path(work).parents) if str(parent) != "."]
    entries = [
        *(folder(name) for name in ("dev", "proc", "sys", "tmp", *folders, work)),
        *(
            Entry(f"dev/{name}", mode, device=machine.line.number if name == _LINE else (major, minor))
            for name, mode, major, minor in _DEVICES
        ),
        Entry("init", stat.S_IFREG | 0o755, init),
        Entry(_START, stat.S_IFREG | 0o644, _start(job, workdir, unasked)),
    ]
    try:
        for path in sorted(job.payload.rglob("*")):
            name = f"{work}/{path.relative_to(job.payload)}"
            if path.is_dir():
                entries.append(folder(name))
            else:
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                entries.append(Entry(name, stat.S_IFREG | mode, path.read_bytes()))
    except OSError as error:
        raise InfrastructureError(f"cannot read the workload in {job.payload}: {error.strerror}") from error
    for name, data in agent_files(job).items():
        entries.append(Entry(f"{work}/{name}", stat.S_IFREG | 0o644, data))
    return cpio(entries)


def checksum(init: bytes) -> str:
    """Return what tells two versions of this user space apart (SHA-256, hex); the payload has its own."""
    return hashlib.sha256(init + repr(_DEVICES).encode()).hexdigest()


def folder(name: str) -> Entry:
    """Return the entry of a folder."""
    return Entry(name, stat.S_IFDIR | 0o755)


def _start(job: Job, workdir: str, unasked: bool) -> bytes:
    serve = agent_command(job)
    if unasked:
        rests = f"{round(job.settle * 1000)}:{round(job.pause * 1000)}"
        serve[2:2] = ["--unasked", rests]
    texts = [workdir]
    for command in (shlex.split(PREPARE), serve):
        texts += [str(len(command)), *command]
    return b"".join(text.encode() + b"\0" for text in texts)
