"""Processes that wait for the end of a bisection, and recovery of bisections whose executor was killed.

A waiting process holds a lock file named after the bisection; the lock ends with the process, however it
dies, and the file stays. So others know whether a process waits, or waited when it was killed. A bisection
that nobody waited for is taken up by the next executor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bisector.engine.state_lock import is_locked, locking
from bisector.store_ports import Store


def _path(state_dir: Path, bisection: str) -> Path:
    return state_dir / "waiting" / bisection


@contextmanager
def waiter(state_dir: Path, bisection: str) -> Iterator[bool]:
    """Wait for a bisection while the block runs; give whether this is the first process that waits for it."""
    from filelock import FileLock, Timeout

    path = _path(state_dir, bisection)
    lock = FileLock(path)
    with locking(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=0)
    if not lock.is_locked:
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()


def is_waited_for(state_dir: Path, bisection: str) -> bool:
    """Return whether some process waits for a bisection."""
    return is_locked(_path(state_dir, bisection))


def forget_killed_waiter(state_dir: Path, bisection: str) -> None:
    """Remove the lock file of a killed process, unless another one waits now. Raises InfrastructureError."""
    if not is_waited_for(state_dir, bisection):
        with locking(_path(state_dir, bisection)):
            _path(state_dir, bisection).unlink(missing_ok=True)


def recover(store: Store, state_dir: Path, own: str | None = None) -> None:
    """Queue bisections of killed executors again; those whose waiting process was killed are interrupted.

    own: the one that the new executor begins with.
    """
    for summary in store.list(statuses=("running",)):
        if summary.id == own or is_waited_for(state_dir, summary.id):
            continue
        left = _path(state_dir, summary.id)
        if left.exists():  # by the process that was to show its end
            left.unlink(missing_ok=True)
            store.set_status(summary.id, "interrupted", expected=("running",))
        else:
            store.set_status(summary.id, "queued", expected=("running",))
