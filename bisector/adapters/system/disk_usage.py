"""Disk usage of files, and their removal: complete, even if the process is killed meanwhile."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from bisector.adapters.system.files import os_errors_reported

_REMOVING = ".removing-"
"""Beginning of the name of a folder that is being removed; what a killed process left is removed later."""
DISK_FULL = "No space left on device|Disk quota exceeded|Out of diskspace"
"""How programs say that a disk is full, or the user's share of it: strerror of ENOSPC and EDQUOT, and git."""
_BLOCK_BYTES = 512
"""The unit of st_blocks, whatever the file system's own is (stat(2))."""


def disk_usage(*paths: Path) -> int:
    """Return the bytes that files and folders take on the disk: holes take none, links are not followed."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):  # not there, or removed meanwhile
            total += path.lstat().st_blocks * _BLOCK_BYTES
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                total += disk_usage(*path.iterdir())
    return total


def remove(path: Path) -> None:
    """Remove a file or folder; of a folder that is used by its name no part is ever missing.

    Raises InfrastructureError.
    """
    with os_errors_reported(f"{path} cannot be removed", cure="remove it as the user it belongs to"):
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
            return
        if not path.name.startswith(_REMOVING):
            path = path.rename(path.with_name(f"{_REMOVING}{secrets.token_hex(4)}"))
        with contextlib.suppress(FileNotFoundError):  # another process removes it, too
            shutil.rmtree(path)


def used_at(folder: Path) -> float:
    """Return when a folder was last changed or touched; 0 where another process has removed it."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def half_removed(folders: Iterable[Path]) -> list[Path]:
    """Return the folders below `folders` whose removal a killed process had begun."""
    return [path for folder in folders for path in folder.glob(f"{_REMOVING}*")]
