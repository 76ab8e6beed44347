"""The lock of a state folder: one process executes bisections there at a time, and others can see which.

Not `adapters.system.files.exclusive_lock`: the engine imports no adapters, and others ask who holds this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bisector.errors import ExitCode, PerfbisectError

_PROBE_SECONDS = 1.0
"""How long the lock is waited for: a process that only asks with `runner` holds it for an instant."""


class Busy(PerfbisectError):
    """Another process runs bisections in this state folder. `bisection` is the one it runs."""

    exit_code = ExitCode.WRONG_REQUEST

    def __init__(self, pid: str, bisection: str) -> None:
        """pid and bisection as the other process wrote them down."""
        self.bisection = bisection
        super().__init__(
            f"another perfbisect (process {pid}) is running the bisection '{bisection}' in this state folder",
            cure="wait, follow it with 'perfbisect status', or use another folder: PERFBISECT_STATE_DIR",
        )


@contextmanager
def lock(state_dir: Path, bisection: str) -> Iterator[None]:
    """Hold the state folder's lock; the kernel frees it when we die. Raises Busy."""
    from filelock import FileLock, Timeout

    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file_lock = FileLock(_path(state_dir))
    try:
        file_lock.acquire(timeout=_PROBE_SECONDS, poll_interval=_PROBE_SECONDS / 20)
    except Timeout:
        raise Busy(*(_holder(state_dir) or ("unknown", "unknown"))) from None
    try:
        _holder_path(state_dir).write_text(f"{os.getpid()} {bisection}\n", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):  # a full disk must not hide how the search ended
            _holder_path(state_dir).unlink()
        file_lock.release()


def runner(state_dir: Path) -> str | None:
    """Return the bisection that some process is running in this state folder, if any."""
    if _holder(state_dir) is None or not _path(state_dir).exists():
        return None
    from filelock import FileLock, Timeout  # takes 40 ms: only where one runs, or was killed

    try:
        with FileLock(_path(state_dir), timeout=0):
            return None
    except Timeout:
        holder = _holder(state_dir)
        return holder[1] if holder is not None else None


def _path(state_dir: Path) -> Path:
    return state_dir / "executor.lock"


def _holder_path(state_dir: Path) -> Path:
    return state_dir / "executor.holder"


def _holder(state_dir: Path) -> tuple[str, str] | None:
    """Return the process and the bisection that were written down last, if any were."""
    with suppress(OSError):
        pid, _, bisection = _holder_path(state_dir).read_text(encoding="utf-8").strip().partition(" ")
        return (pid, bisection) if bisection else None
    return None
