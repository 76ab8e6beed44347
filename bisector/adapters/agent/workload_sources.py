"""The sources of a payload: the folder of a workload, or one written for a command."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.disk_usage import DISK_FULL
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.schemas.documents.document import shown_path
from bisector.schemas.workload.command_workload import SCRIPT
from bisector.schemas.workload.workload import MANIFEST, Workload

_BLOCK_BYTES = 1 << 20
"""Read at once."""


def checksum(folder: Path) -> str:
    """Return the SHA-256 over names, execute bits and contents of all files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            # Not by os.access, which says no where the disk is mounted noexec.
            executable = "x" if status.st_mode & 0o111 else "-"
            digest.update(os.fsencode(f"{path.relative_to(folder)} {executable} {status.st_size}\n"))
            while block := file.read(_BLOCK_BYTES):  # what a workload reads may be larger than the memory
                digest.update(block)
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
    if re.search(DISK_FULL, done.output):
        return _disk_full(workload, details)
    return RequestError(
        f"the workload '{workload.name}' does not build ('{command[0]}' ended with code {done.code})",
        details=details,
        cure=f"mend 'build' in {workload.folder / MANIFEST}",
    )


def _disk_full(workload: Workload, details: str) -> InfrastructureError:
    return InfrastructureError(
        f"the disk is full where the workload '{workload.name}' is built",
        details=details,
        cure=f"free some space there, or in {tempfile.gettempdir()} (TMPDIR), which compilers use",
    )


def copy_sources(workload: Workload, build: Path) -> None:
    """Copy the workload's folder, or make the folder of a command, which is a workload like any other.

    Raises RequestError where a file of the folder cannot be read, InfrastructureError on a full disk.
    """
    if not workload.script:
        try:
            shutil.copytree(workload.folder, build, ignore=_of_no_content)
        except shutil.Error as error:
            raise _copy_error(workload, error) from error
        return
    build.mkdir(parents=True)
    settings = workload.manifest.model_dump(mode="json", exclude_unset=True)
    (build / MANIFEST).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    script = build / SCRIPT
    script.write_text(workload.script, encoding="utf-8")
    script.chmod(0o755)


def _of_no_content(folder: str, names: Sequence[str]) -> list[str]:
    """Return what is neither file nor folder, which `checksum` passes by, too: an editor's lock, a pipe."""
    return [name for name in names if not ((path := Path(folder, name)).is_file() or path.is_dir())]


def _copy_error(workload: Workload, error: shutil.Error) -> PerfbisectError:
    """Return the error of the first file that could not be copied; shutil gives them all."""
    source, _, why = error.args[0][0]
    if re.search(DISK_FULL, why):
        return _disk_full(workload, source)
    return RequestError(
        f"{shown_path(source)}: cannot be read, and it is in the folder of the workload '{workload.name}'",
        details=re.sub(r"^\[Errno \d+\] ", "", why),
        cure="mend its rights, or take it out of that folder",
    )
