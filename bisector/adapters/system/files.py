"""Files of this machine: written whole or not at all, and locks between processes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bisector.errors import InfrastructureError, Interrupted

_LOCK_POLL_SECONDS = 0.2
"""How often a lock that another process holds is tried; short enough that Ctrl-C feels immediate."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, hex: 10 ms for the 12 MB of a kernel of the default recipe."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_file(path: Path, data: bytes) -> None:
    """Write a file that nobody reads before it is whole, such as the output of a run; make its folders.

    It is neither synced nor renamed: that would write to the disk between two runs of a workload.
    Raises InfrastructureError.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_atomically(path: Path, data: str | bytes, *, mode: int = 0o666) -> None:
    """Write a file; a process that is killed meanwhile, or a full disk, leaves the old content.

    data: text is written as UTF-8. mode: permissions, less the umask. Raises InfrastructureError.
    """
    with replacing(path) as partial:
        content = data.encode() if isinstance(data, str) else data
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a new file in the same folder, which takes the place of `path` at the end.

    Where the block raises, the new file is removed and `path` is as it was. Raises InfrastructureError for
    what the disk refuses.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_or_os_error(path) as partial:
            yield partial


@contextlib.contextmanager
def replacing_or_os_error(path: Path) -> Iterator[Path]:
    """Do the same in a folder that exists; raise the OSError itself."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield partial
        publish_file(partial, path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def publish_file(partial: Path, final: Path) -> None:
    """Give a finished file its name (on one file system), in place of a file of that name. Raises OSError."""
    _sync(partial)  # without it, a crash of the machine may leave the new name with no content
    partial.replace(final)


def publish_folder(partial: Path, final: Path) -> None:
    """Give a finished folder its name (on one file system), so that a crash leaves it whole or not at all.

    Raises OSError, as when there is such a folder that is not empty.
    """
    for path in (*partial.rglob("*"), partial):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            _sync(path)
    partial.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def exclusive_lock(
    path: Path, on_wait: Callable[[], None] | None = None, stop: Callable[[], bool] | None = None
) -> Iterator[None]:
    """Hold a lock file (flock); wait for another process or thread that holds it.

    The lock ends with this process, however it dies, and programs that it started do not inherit it. A file
    system without flock is refused: a lock by the mere existence of a file would outlive a killed process.

    on_wait: called once if the lock is taken; it may raise, to refuse instead of waiting. stop: asked while
    waiting; True raises Interrupted. Raises InfrastructureError if the file cannot be opened.
    """
    from filelock import FileLock, Timeout  # takes 40 ms, which commands that only look need not wait

    # Not bound to a thread: a boot may be left by another thread than the one that began it.
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)
    waiting = False
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
            break
        except Timeout:
            if on_wait is not None and not waiting:
                on_wait()
            waiting = True
            if stop is not None and stop():
                raise Interrupted(f"stopped while another process held {path}") from None
            time.sleep(_LOCK_POLL_SECONDS)
        except OSError as error:
            raise InfrastructureError(f"cannot lock {path}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def os_errors_reported(what: str, cure: str = "") -> Iterator[None]:
    """Raise InfrastructureError for an OSError of the block: `what`, and the system's reason."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{what}: {error.strerror}", cure=cure) from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise InfrastructureError where the block cannot write a file or folder."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from error


CACHE_CURE = "have its owner give the right to use that folder, or set another one (PERFBISECT_CACHE_DIR)"
"""Where something cannot be made in the cache folder."""


def write_error(path: Path, error: OSError) -> InfrastructureError:
    """Return the error that says that something cannot be written, and what to do about it."""
    first = "free some space"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        first = "have its owner give the right to write there"
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        first = "move away the file that is in the place of a folder"
    return InfrastructureError(
        f"cannot write {path}: {error.strerror}",
        cure=f"{first}, or set another folder (PERFBISECT_CACHE_DIR, PERFBISECT_STATE_DIR)",
    )
