"""Files that users name for a result, such as `perfbisect report --output FILE`."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from bisector.adapters.system.files import replacing_or_os_error
from bisector.errors import InfrastructureError, RequestError

_DISK_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


def write_output_file(path: Path, text: str) -> None:
    """Write a file that the user named. An old file stays as it is until the new one is complete.

    Links, devices and pipes (`/dev/stdout`) are written directly.
    Raises RequestError, because the path is part of the request; InfrastructureError where the disk fails.
    """
    with os_errors_of(path):
        exists = path.exists()
        if path.is_symlink() or (exists and not path.is_file()):
            path.write_text(text, encoding="utf-8")
            return
        with replacing_or_os_error(path) as partial:
            partial.write_text(text, encoding="utf-8")
            if exists:
                shutil.copymode(path, partial)


def require_writable(path: Path) -> None:
    """Raise as `write_output_file` would, before the long work whose result it is for. Leaves no new file."""
    with os_errors_of(path):
        exists = path.exists()
        path.open("a").close()
        if not exists:
            path.unlink()


@contextlib.contextmanager
def os_errors_of(path: Path) -> Iterator[None]:
    """Raise RequestError where a file that the user named cannot be written, or InfrastructureError."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}"
        if error.errno in _DISK_FAILED:
            raise InfrastructureError(message, cure="free space there, or name a file elsewhere") from error
        raise RequestError(message, cure="name a file in a folder that exists and may be written") from error
