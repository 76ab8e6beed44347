"""Bisections that wait for an executor, and the processes that wait for a bisection.

A process that is to show a bisection's end holds a lock named after it, which ends with the process however
it dies. So others know whether anybody waits, or did: what nobody waited for is executed by whoever comes.
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
    """Wait for a bisection while the block runs; gives whether nobody else did before."""
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
    """Let a bisection be one that nobody has waited for, unless somebody does. Raises InfrastructureError."""
    if not is_waited_for(state_dir, bisection):
        with locking(_path(state_dir, bisection)):
            _path(state_dir, bisection).unlink(missing_ok=True)


def recover(store: Store, state_dir: Path, own: str | None = None) -> None:
    """Queue bisections of killed executors again; those with a process of their own count as interrupted.

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
