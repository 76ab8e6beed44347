"""Removal of temporary files that a killed process left behind."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from pathlib import Path

from bisector.adapters.system.processes import identity, life

_OWNER, _DRAFT = "owner", "owner.new"
"""The file in a temporary folder that names the process that made it, and its name while it is written."""

_DRAWN_CHARACTERS = 8
"""Random characters that `tempfile.mkdtemp` adds to a prefix."""

_OF_A_BOOT = ("deploy.gate", "deploy.tar", "initramfs", "scratch.raw", "serial.in", "serial.out")
"""Files of a boot that are not needed after it has ended. Some are as large as a workload."""


def make_temporary_folder(prefix: str, parent: Path | None = None) -> Path:
    """Make a folder below /tmp or `parent`. The caller removes it, or `remove_leftovers` if that is killed.

    Its name has eight characters beside `prefix`.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            (folder / _DRAFT).write_text(identity(os.getpid()), encoding="utf-8")
            (folder / _DRAFT).rename(folder / _OWNER)
        except FileNotFoundError:  # removed by another process, in `remove_leftovers`
            continue
        except OSError:  # a full disk; without its owner file the folder would never be removed
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder


def remove_leftovers(prefix: str, parent: Path | None = None) -> None:
    """Remove the temporary folders of dead processes, and none that may belong to a living one."""
    pattern = glob.escape(prefix) + "?" * _DRAWN_CHARACTERS
    for folder in (parent or Path(tempfile.gettempdir())).glob(pattern):
        with contextlib.suppress(OSError):  # another user's, not empty, or removed meanwhile
            if not (folder / _OWNER).exists():  # its maker was killed here, or will try again
                (folder / _DRAFT).unlink(missing_ok=True)
                folder.rmdir()
            elif life((folder / _OWNER).read_text(encoding="utf-8")) == "dead":
                shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers_of_boots(bisection: Path) -> None:
    """Remove what the boots of a bisection left. bisection: its folder; no boot may be running."""
    for path in leftovers_of_boots(bisection):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def leftovers_of_boots(bisection: Path) -> list[Path]:
    """Return the files of a bisection's boots that are not needed after they have ended."""
    return [path for boot in bisection.glob("boots/*") for path in leftovers_of(boot)]


def leftovers_of(boot: Path) -> list[Path]:
    """Return the same of one boot, by its folder."""
    return [boot / name for name in _OF_A_BOOT if (boot / name).exists()]
