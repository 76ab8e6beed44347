"""Locks that all perfbisects of this machine share, whatever their state and cache folders are.

A lock is named after what it protects: a physical machine or a testbed. The kernel frees it when its holder
dies. Waiting processes get it in turn, so one that locks again and again does not starve the others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bisector.adapters.system.processes import identity
from bisector.errors import InfrastructureError, Interrupted
from bisector.ports import Progress

_POLL_SECONDS = 0.05
"""How often a taken lock is tried. When it is passed on the host is idle for half of this on average."""

_SILENT_SECONDS = 2.0
"""A wait is reported after this time, so that waits for single short runs are not."""

_HOLDER_BYTES = 1000
"""Limit for the holder's text, the names of a bisection and a folder: others may write to the file."""


_held_here: Counter[Path] = Counter()
"""How often this process holds a file, by its path."""
_count_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class MachineLock:
    """One lock, or several that are taken together, always in the same order, so that there is no deadlock.

    folder: the same for all perfbisects of the machine. what: ends the message 'waiting for ...'.
    user: this process, as shown to those who wait for it. stop: asked while waiting; True raises Interrupted.
    """

    folder: Path
    names: tuple[str, ...]
    what: str
    user: str
    stop: Callable[[], bool] | None = None

    @contextlib.contextmanager
    def exclusive(self, progress: Progress) -> Iterator[None]:
        """Hold it alone. Raises Interrupted, or InfrastructureError where files cannot be locked."""
        with self._all(fcntl.LOCK_EX, progress):
            yield

    @contextlib.contextmanager
    def shared(self, progress: Progress) -> Iterator[None]:
        """Hold it together with others who share it. Raises as `exclusive` does."""
        with self._all(fcntl.LOCK_SH, progress):
            yield

    def is_wanted(self) -> bool:
        """Return whether anybody waits for it while we hold it."""
        return any(self._has_waiter(self._path(name)) for name in self.names)

    def _has_waiter(self, path: Path) -> bool:
        with contextlib.suppress(OSError), _opened(path.with_name(f"{path.name}.turn")) as turn:
            return not _try_lock(turn, fcntl.LOCK_EX)
        return False

    def _path(self, name: str) -> Path:
        return self.folder / file_name(name)

    @contextlib.contextmanager
    def _all(self, kind: int, progress: Progress) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            for name in sorted(set(self.names)):
                path = self._path(name)
                try:
                    held.enter_context(self._one(path, kind, progress))
                except OSError as error:
                    raise InfrastructureError(
                        f"cannot lock {path}: {error.strerror}",
                        cure="all perfbisects of a machine need one folder for their locks that they may "
                        "write: set lock_dir in perfbisect.toml, or PERFBISECT_LOCK_DIR",
                    ) from error
            yield

    @contextlib.contextmanager
    def _one(self, path: Path, kind: int, progress: Progress) -> Iterator[None]:
        while True:
            # The next in line holds the turn lock. Everybody else, the last holder too, waits for that.
            with _opened(path.with_name(f"{path.name}.turn")) as turn, _opened(path) as file:
                self._wait(turn, fcntl.LOCK_EX, path, file, progress)
                self._wait(file, kind, path, file, progress)
                if os.fstat(turn).st_nlink == 0 or os.fstat(file).st_nlink == 0:
                    continue  # removed meanwhile by a cleaner of old files: others lock a new one
                since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
                os.truncate(file, 0)
                said = f"{identity(os.getpid())}\n{self.user}, since {since}\n{self.what}\n"
                os.pwrite(file, said.encode(), 0)
                fcntl.flock(turn, fcntl.LOCK_UN)
                with _count_lock:
                    _held_here[path] += 1
                try:
                    yield
                finally:
                    with _count_lock:
                        _held_here[path] -= 1
                    fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have inherited the file
                return

    def _wait(self, handle: int, kind: int, path: Path, file: int, progress: Progress) -> None:
        started, told = time.monotonic(), False
        while not _try_lock(handle, kind):
            if self.stop is not None and self.stop():
                raise Interrupted(f"stopped while waiting for {self.what}")
            if not told and time.monotonic() > started + _SILENT_SECONDS:
                told = self._tell(path, file, progress)
            time.sleep(_POLL_SECONDS)

    def _tell(self, path: Path, file: int, progress: Progress) -> bool:
        """Report who holds it, unless this process does. Return whether it was reported.

        The file names the holder that came last; of several that share the lock that one may have left.
        """
        holder, text, _ = _read_holder(file)
        if holder == identity(os.getpid()):
            with _count_lock:
                if _held_here[path]:
                    return False
            text = ""
        progress(f"waiting for {self.what}: {text or 'another process'} has it")
        return True


def file_name(name: str) -> str:
    """Return the name of a lock's file."""
    return re.sub(r"[^\w.:-]", "_", name)


def holders(folder: Path, beginning: str) -> dict[str, tuple[str, str]]:
    """Return the locks whose names begin so that somebody holds now: file name -> (who, what), in words."""
    found = {}
    for path in folder.glob(f"{beginning}*"):
        if path.suffix != ".turn":
            with contextlib.suppress(OSError), _opened(path) as file:
                if not _try_lock(file, fcntl.LOCK_SH):
                    found[path.name] = _read_holder(file)[1:]
    return found


def _read_holder(file: int) -> tuple[str, str, str]:
    """Return the identity of a lock's last holder, what it says of itself, and what the lock is of."""
    lines = os.pread(file, _HOLDER_BYTES, 0).decode(errors="replace").split("\n")
    holder, who, what = ("".join(filter(str.isprintable, line)) for line in (*lines, "", "")[:3])
    return holder, who, what


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a lock's file, made for all users of this machine."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            path.parent.chmod(0o1777)
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:  # without O_CREAT: fs.protected_regular refuses it for another user's file in such a folder
        handle = os.open(path, flags)
    except FileNotFoundError:
        handle = os.open(path, flags | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(handle, 0o666)  # whatever our umask is
    try:
        yield handle
    finally:
        os.close(handle)


def _try_lock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(handle: int) -> Iterator[None]:
    """Hold the lock of a file that is open; wait for another process, such as an emulator, that holds it."""
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
