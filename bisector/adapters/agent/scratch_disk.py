"""Block devices that a workload may overwrite: made for a guest, or named for that purpose by the lab.

Nothing is written to a device that anybody uses. Here it is looked at before a machine is booted, so that a
wrong one is refused early; the runner on the testbed looks again before it starts anything.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bisector.adapters.system.files import os_errors_reported
from bisector.errors import RequestError
from bisector.ports import Job

DEVICE_VARIABLE = "PERFBISECT_BLOCK_DEVICE"
"""Tells the workload which device it has; the runner puts it in place of '{block_device}'."""

CHECK_SCRIPT = """\
import errno, fcntl, os, stat, struct, sys
path, need = sys.argv[1], int(sys.argv[2])
def end(words):
    print(words)
    sys.exit()
try:
    info = os.stat(path)
except OSError as error:
    end(os.strerror(error.errno))
if not stat.S_ISBLK(info.st_mode):
    end("it is not a block device")
try:
    # O_EXCL without O_CREAT asks for the device alone: no part of it is mounted or otherwise in use.
    handle = os.open(path, os.O_RDWR | os.O_EXCL)
except OSError as error:
    locked = error.errno in (errno.EROFS, errno.EACCES)
    busy = error.errno == errno.EBUSY
    end("it is mounted or in use" if busy else "it is read-only" if locked else os.strerror(error.errno))
if struct.unpack("i", fcntl.ioctl(handle, 0x125E, b"\\0" * 4))[0]:  # BLKROGET
    end("it is read-only")
size = os.lseek(handle, 0, os.SEEK_END)
if size < need:
    end(f"it has {size >> 20} MiB, the workload needs {need >> 20}")
end("ok")
"""
"""A Python program that prints 'ok', or what is wrong with the device; it changes nothing."""


def with_scratch_disk(job: Job, path: str) -> Job:
    """Return the job as it runs on a testbed with this device."""
    return replace(job, environment={**job.environment, f"env.{DEVICE_VARIABLE}": path})


def check_device(
    path: str, size: int, testbed: str, run: Callable[[list[str]], str], python: str = "python3"
) -> None:
    """Raise RequestError unless a workload may overwrite the block device of a testbed.

    size: bytes that it must have. run: executes a command there and returns its output. python: on its PATH.
    """
    answer = run([python, "-c", CHECK_SCRIPT, path, str(size)]).strip()
    if answer != "ok":
        raise RequestError(
            f"the block device {path} of the testbed '{testbed}' cannot be used: {answer}",
            details="nothing was written to it",
            cure="name another one with perfbisect_block_device in the inventory; what is on it will be lost",
        )


@contextlib.contextmanager
def scratch_file(path: Path, size: int) -> Iterator[None]:
    """Make a sparse file of so many bytes, and remove it at the end. Raises InfrastructureError."""
    with os_errors_reported(f"cannot make the scratch disk {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # of a boot that was killed
        with path.open("xb") as file:
            os.truncate(file.fileno(), size)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
