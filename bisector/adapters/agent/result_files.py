"""Fetching the files that a run left on its testbed into the folder of its boot."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.system.archive import unpack_tar
from bisector.errors import InfrastructureError

if TYPE_CHECKING:
    from bisector.adapters.system.ssh import SSH

FetchResults = Callable[[str, Path], bool]
"""Moves a file or folder, by its name in the work folder, into a folder of this machine.

Returns whether there was one. Links are left out. Raises InfrastructureError, and LineClosed when the
connection dies.
"""

_MAX_BYTES = 1 << 30
"""Size of the results of one run. A suite without monitors leaves megabytes; hundreds of runs with more would
fill a disk."""

_TRANSFER_SECONDS = 600.0
"""Timeout of the transfer of one run's files: 1 GiB over a line of 2 MB/s."""

_EXIT_NO_FILE = 66
"""EX_NOINPUT of sysexits.h."""

_SEND = f'cd "$1" && {{ [ -e "$2" ] || exit {_EXIT_NO_FILE}; }} && tar -cf - "./$2" && rm -rf "./$2"'
"""Removes what was sent. Otherwise the next run would return this run's files."""


def fetch_over_ssh(ssh: SSH, workdir: str) -> FetchResults:
    """Return the function for a work folder on a machine that is reached by SSH."""

    def fetch(name: str, target: Path) -> bool:
        archive = target.with_suffix(".tar")
        try:
            archive.parent.mkdir(parents=True, exist_ok=True)
            ran = ssh.save(
                ["sh", "-c", _SEND, "sh", workdir, name],
                archive,
                timeout=_TRANSFER_SECONDS,
                max_bytes=_MAX_BYTES,
            )
            if ran.code == _EXIT_NO_FILE:
                return False
            if ran.code != 0:
                raise InfrastructureError(
                    f"'{name}' cannot be fetched from {ssh.host} (code {ran.code})", details=ran.output
                )
            unpack_tar(archive, target, max_bytes=_MAX_BYTES)
        finally:
            archive.unlink(missing_ok=True)
        return True

    return fetch


def move_from_folder(work: Path) -> FetchResults:
    """Return the function for a work folder on this machine."""

    def fetch(name: str, target: Path) -> bool:
        source, moved = work / name, target / name
        if not source.exists():
            return False
        try:
            moved.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(source, moved)
        except OSError as error:
            raise InfrastructureError(f"cannot bring '{name}' to {target}", details=str(error)) from error
        return True

    return fetch
