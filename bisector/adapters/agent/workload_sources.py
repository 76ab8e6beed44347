"""The sources of a payload: the folder of a workload, or one written for a command."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.command import CompletedCommand
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.schemas.workload.command_workload import SCRIPT
from bisector.schemas.workload.workload import MANIFEST, Workload


def checksum(folder: Path) -> str:
    """Return the SHA-256 over names, execute bits and contents of all files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = path.read_bytes()
        # Not by os.access, which says no where the disk is mounted noexec.
        executable = "x" if path.stat().st_mode & 0o111 else "-"
        digest.update(f"{path.relative_to(folder)} {executable} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def source_checksum(workload: Workload) -> str:
    """Return the SHA-256 of what a payload is made of: a folder, or a command with its manifest."""
    if not workload.script:
        return checksum(workload.folder)
    settings = workload.manifest.model_dump(mode="json", exclude_unset=True)
    return hashlib.sha256(json.dumps([settings, workload.script]).encode()).hexdigest()


def build_error(workload: Workload, command: Sequence[str], done: CompletedCommand) -> PerfbisectError:
    """Return the error of a command of the manifest's 'build' that failed: its fault, or the disk's."""
    details = f"{' '.join(command)}\n{done.output[-4000:]}"
    if os.strerror(errno.ENOSPC) in done.output:
        return InfrastructureError(
            f"the disk is full where the workload '{workload.name}' is built",
            details=details,
            cure=f"free some space there, or in {tempfile.gettempdir()} (TMPDIR), which compilers use",
        )
    return RequestError(
        f"the workload '{workload.name}' does not build ('{command[0]}' ended with code {done.code})",
        details=details,
        cure=f"mend 'build' in {workload.folder / MANIFEST}",
    )


def copy_sources(workload: Workload, build: Path) -> None:
    """Copy the workload's folder, or make the folder of a command, which is a workload like any other."""
    if not workload.script:
        shutil.copytree(workload.folder, build)
        return
    build.mkdir(parents=True)
    settings = workload.manifest.model_dump(mode="json", exclude_unset=True)
    (build / MANIFEST).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    script = build / SCRIPT
    script.write_text(workload.script, encoding="utf-8")
    script.chmod(0o755)
