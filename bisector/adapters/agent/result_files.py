"""Bringing home what a run left on its testbed: files, whole, into the folder of its boot."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError

FetchResults = Callable[[str, Path], bool]
"""Moves a file or folder of the work folder, by its name there, into a folder of this machine.

Links are left out. Returns whether there was one. Raises InfrastructureError, LineClosed when the connection
dies.
"""

_MOST_BYTES = 1 << 30
"""Of one run: hundreds of runs with more would fill a disk; a suite without monitors leaves megabytes."""

_SECONDS = 600.0
"""For one run's files: 1 GiB over a line of 2 MB/s."""

_NOTHING = 66
"""EX_NOINPUT of sysexits.h."""

_SEND = f'cd "$1" && {{ [ -e "$2" ] || exit {_NOTHING}; }} && tar -cf - "./$2" && rm -rf "./$2"'
"""What was sent is removed, so that a next run that leaves nothing cannot be taken for this one."""


def fetch_over_ssh(ssh: SSH, workdir: str) -> FetchResults:
    """Return what brings files of a folder on a machine that is reached by SSH."""

    def bring(name: str, home: Path) -> bool:
        archive = home.with_suffix(".tar")
        try:
            archive.parent.mkdir(parents=True, exist_ok=True)
            ran = ssh.save(
                ["sh", "-c", _SEND, "sh", workdir, name], archive, timeout=_SECONDS, most=_MOST_BYTES
            )
            if ran.code == _NOTHING:
                return False
            if ran.code != 0:
                raise InfrastructureError(
                    f"'{name}' cannot be brought home from {ssh.host} (code {ran.code})", details=ran.output
                )
            unpack(archive, home)
        finally:
            archive.unlink(missing_ok=True)
        return True

    return bring


def move_from_folder(work: Path) -> FetchResults:
    """Return what brings files of a folder on this machine."""

    def bring(name: str, home: Path) -> bool:
        source, target = work / name, home / name
        if not source.exists():
            return False
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(source, target)
        except OSError as error:
            raise InfrastructureError(f"cannot bring '{name}' to {home}", details=str(error)) from error
        return True

    return bring


def unpack(archive: Path, home: Path) -> None:
    """Unpack the files and folders of a tar archive below a folder; no links or devices, and nowhere else."""
    try:
        with tarfile.open(archive, mode="r|") as members:
            for member in members:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise InfrastructureError(
                        f"{archive}: '{member.name}' lies outside what was asked for",
                        cure="look at the testbed",
                    )
                target = home / path
                content = members.extractfile(member) if member.isfile() else None
                if content is not None:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as file:
                        shutil.copyfileobj(content, file)
                elif member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
    except (OSError, tarfile.TarError) as error:
        raise InfrastructureError(
            f"what a run left cannot be unpacked into {home}", details=str(error)
        ) from error
