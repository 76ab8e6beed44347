"""Permissions of a state folder, and of the database file in it.

There lie the database, and what kernels, workloads and machines printed. A folder that perfbisect makes is
closed to other users. One that was there before may be the user's for other things too: it keeps its mode,
and what perfbisect puts there is closed instead.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
from pathlib import Path

from bisector.errors import RequestError
from bisector.schemas.settings import usual_state_dir

log = logging.getLogger(__name__)

_PRIVATE = ("bisections", "health", "lab-checks")
"""Folders in it that hold what was printed; the others hold locks, names of testbeds and numbers."""

_OWN = re.compile(
    rf"{'|'.join(_PRIVATE)}|calibrations|testbeds|waiting|executor\.(lock|holder)|import\.lock|reserve|probe"
    r"|perfbisect\.sqlite(-wal|-shm|-journal)?|import-.{8}"
)
"""All names that perfbisect writes there."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_closed_or_safe(folder: Path) -> None:
    """Make a folder that other users cannot look into; refuse one that they can write to. Raises OSError.

    Raises RequestError: somebody else could put a file or a link there under a name that perfbisect uses.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & stat.S_IWOTH:
        raise RequestError(
            f"every user of this machine can write to {folder}: no folder for what perfbisect keeps",
            cure=f"name a folder of your own, such as {folder / 'perfbisect'} (PERFBISECT_STATE_DIR, or "
            "state_dir in perfbisect.toml)",
        )


def prepare_state_folder(folder: Path) -> None:
    """Make a state folder, or see to it that what is private in one is closed. Raises OSError.

    Raises RequestError: as `make_closed_or_safe`, or others can look into a folder in it that may be foreign.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    mine = found.st_uid == os.geteuid()
    alone = mine and all(_OWN.fullmatch(path.name) for path in folder.iterdir())
    if alone and folder == usual_state_dir() and found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX:
        _close(folder)
    make_closed_or_safe(folder)
    if mine and folder.stat().st_mode & _OTHERS:
        for name in _PRIVATE:
            _close_within(folder / name, certain=alone)


def _close_within(folder: Path, *, certain: bool) -> None:
    """Make or close a folder in an open one. certain: it is perfbisect's, and no one else's of that name."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
        if not certain:
            raise RequestError(
                f"other users can look into {folder}, where perfbisect would keep what kernels print",
                cure=f"chmod 700 {folder}; or name another state folder (PERFBISECT_STATE_DIR)",
            )
        _close(folder)


def close_database_file(path: Path) -> None:
    """Make a SQLite file that only its owner can read, or close one with the files beside it.

    What SQLite puts beside it later has its mode. It is not opened here: to close it again would end this
    process's own locks on it. What cannot be changed is left: of another user, who lets
    us write to it.
    """
    with contextlib.suppress(OSError):
        if not path.exists():  # the time of one that is there stays that of its last change
            path.touch(mode=0o600)
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
        with contextlib.suppress(OSError):
            found = path.with_name(name).stat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
                path.with_name(name).chmod(0o600)


def _close(folder: Path) -> None:
    log.warning("other users could look into %s; it is closed now", folder)
    folder.chmod(0o700)
