"""The lock of a state folder: one process executes bisections there at a time, and others can see which.

Not `adapters.system.files.exclusive_lock`: the engine imports no adapters, and others ask who holds this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import ExitCode, InfrastructureError, PerfbisectError

_PROBE_SECONDS = 1.0
"""How long to wait for the lock: `find_holder` holds it for an instant only to ask."""


QUEUE = "queue"
"""`doing` of a process that executes whatever is queued; never a bisection's id, which contains a '-'."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that works in the state folder, or on the database. doing: a bisection's id, QUEUE, or words.

    who, where: in words.
    """

    who: str
    doing: str
    where: str = "in this state folder"

    @property
    def executes(self) -> bool:
        """Whether it executes bisections; others measure without one. Ids have no spaces."""
        return " " not in self.doing

    def __str__(self) -> str:
        doing = f"runs the bisection '{self.doing}'" if self.executes else f"does a {self.doing}"
        if self.doing == QUEUE:
            doing = "executes what is queued"
        return f"another perfbisect ({self.who}) {doing} {self.where}"


class Busy(PerfbisectError):
    """Another process works in this state folder. holder: who, where it is known."""

    exit_code = ExitCode.WRONG_REQUEST

    def __init__(self, holder: Holder | None) -> None:
        """holder: as it wrote down itself."""
        self.holder = holder
        follow = "" if holder is not None and not holder.executes else " follow it with 'perfbisect status',"
        super().__init__(
            str(holder or "another perfbisect works in this state folder"),
            cure=f"wait,{follow} or use another folder: PERFBISECT_STATE_DIR",
        )


@contextmanager
def lock(state_dir: Path, doing: str) -> Iterator[None]:
    """Hold the state folder's lock; the kernel frees it when we die. doing: what others read.

    Raises Busy; InfrastructureError where nothing can be locked.
    """
    from filelock import FileLock, Timeout

    file_lock = FileLock(_path(state_dir), mode=0o600)  # whoever can read it could also lock it
    with locking(_path(state_dir)):
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            file_lock.acquire(timeout=_PROBE_SECONDS, poll_interval=_PROBE_SECONDS / 20)
        except Timeout:
            raise Busy(_holder(state_dir)) from None
    try:
        with locking(_holder_path(state_dir)):
            _holder_path(state_dir).write_text(f"{os.getpid()} {doing}\n", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):  # a full disk must not hide how the search ended
            _holder_path(state_dir).unlink()
        file_lock.release()


@contextmanager
def locking(path: Path) -> Iterator[None]:
    """Raise InfrastructureError for what the system refuses of a file in a state folder."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(
            f"cannot lock {path}: {error.strerror}",
            cure="see to it that this user may write that file, as after a command with sudo, and that the "
            "disk has space; or use another state folder: PERFBISECT_STATE_DIR",
        ) from error


def find_holder(state_dir: Path) -> Holder | None:
    """Return who works in this state folder, if anybody does."""
    holder = _holder(state_dir)
    if holder is None:
        return None
    try:
        held = is_locked(_path(state_dir))
    except InfrastructureError:  # a disk that cannot be written, or another user's file: does it live?
        held = Path("/proc", holder.who.rpartition(" ")[2]).exists()
    return _holder(state_dir) if held else None


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock; a free one is held for an instant to find out.

    Raises InfrastructureError where it cannot be tried.
    """
    if not path.exists():
        return False
    from filelock import FileLock, Timeout  # takes 40 ms, so only where there is a lock file

    with locking(path):
        try:
            with FileLock(path, timeout=0):
                return False
        except Timeout:
            return True


def is_executed(state_dir: Path, status: str) -> bool:
    """Return whether a bisection of this status is being executed, rather than left by a killed process."""
    holder = find_holder(state_dir) if status == "running" else None
    return holder is not None and holder.executes


def _path(state_dir: Path) -> Path:
    return state_dir / "executor.lock"


def _holder_path(state_dir: Path) -> Path:
    return state_dir / "executor.holder"


def _holder(state_dir: Path) -> Holder | None:
    """Return the process that was written down last, if any was."""
    with suppress(OSError):
        pid, _, doing = _holder_path(state_dir).read_text(encoding="utf-8").strip().partition(" ")
        return Holder(f"process {pid}", doing) if doing else None
    return None
