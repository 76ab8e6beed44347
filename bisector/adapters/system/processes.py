"""Processes of this machine, as /proc shows them: which one it is, whether it lives, and how it is ended.

Whoever ends a process or takes over its work must know that it is the right one. What cannot be known is said
to be unknown, never taken for dead. Nothing else in perfbisect reads /proc/<pid> or sends a signal.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

Life = Literal["alive", "dead", "unknown"]

GRACE_SECONDS = 5.0
"""Time between SIGTERM and SIGKILL: long enough for make and QEMU to remove their temporary files."""

_KILL_SECONDS = 5.0
"""Until a killed process is gone: its memory is freed in less than a second, on a loaded host."""

_POLL_SECONDS = 0.02
"""Polling interval of a process group: one look reads all of /proc, 10 ms with 300 processes."""

_IDENTITY = re.compile(r"(\d+)-(\d+)-([0-9a-f]{32})-(\d+)")


def identity(pid: int) -> str:
    """Return '<pid>-<start time>-<boot>-<pid namespace>' of a process, which no other one ever has.

    What cannot be read is empty.
    """
    try:
        fields = read_stat(pid)
    except OSError:
        fields = None
    return "-".join((str(pid), fields[22] if fields else "", *_place()))


def life(identity: str) -> Life:
    """Return whether the process that `identity` named lives; a zombie does not.

    unknown: it is of another pid namespace, where numbers mean something else, or /proc does not tell, as
    where no file descriptor is left or other users' processes are hidden; or this is no identity at all.
    """
    named = _IDENTITY.fullmatch(identity)
    if named is None or not all(_place()):
        return "unknown"
    pid, start, boot, namespace = named.groups()
    if boot != _place()[0]:
        return "dead"
    if namespace != _place()[1]:
        return "unknown"
    try:
        fields = read_stat(int(pid))
    except OSError:
        return "unknown"
    return "alive" if fields and fields[22] == start and not _has_ended(fields) else "dead"


def read_stat(pid: int) -> dict[int, str] | None:
    """Return the fields of /proc/<pid>/stat by their numbers in proc(5), from 3 on; None if it is gone.

    Raises OSError where that cannot be known.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return None
    except FileNotFoundError:  # gone, or hidden from us: mount option hidepid of proc(5)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        raise
    return dict(enumerate(stat.rsplit(")", 1)[1].split(), start=3))  # the second, the name, may hold blanks


def read_all(file: str) -> dict[int, bytes]:
    """Return this file of /proc/<pid> for every other process that we may look into.

    Raises OSError where the answer would not be whole, as without a free file descriptor.
    """
    found = {}
    for pid in _pids():
        if pid != os.getpid():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                found[pid] = Path(f"/proc/{pid}/{file}").read_bytes()
    return found


def command_lines() -> Iterator[tuple[int, list[bytes]]]:
    """Yield (process id, arguments) of all other processes; kernel threads and zombies have no arguments."""
    for pid, text in read_all("cmdline").items():
        arguments = text.split(b"\0")
        if arguments[0]:
            yield pid, arguments


def end_group(group: int) -> None:
    """End a process group: SIGTERM, then SIGKILL to what is left of it after `GRACE_SECONDS`.

    The leader must not have been waited for by then: its number could be another group's.
    """
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + seconds
        while left := any(_may_live(pid, lambda fields: fields[5] == str(group)) for pid in _pids()):
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        if not left:
            return


def send_signal_if_marked(pid: int, number: int, mark: bytes) -> bool:
    """Send a signal to a process with `mark` in its environment or command line; return whether it was sent.

    The number may be another process's by now, hence the look; it cannot become another's after it.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError), _handle(pid) as handle:
        if any(mark in Path(f"/proc/{pid}/{file}").read_bytes() for file in ("environ", "cmdline")):
            if handle is None:
                os.kill(pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
            return True
    return False


def kill(pid: int) -> None:
    """Kill a process and wait until it is gone or a zombie, for `_KILL_SECONDS` at most."""
    with contextlib.suppress(ProcessLookupError), _handle(pid) as handle:
        if handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            ready = select.poll()
            ready.register(handle, select.POLLIN)
            ready.poll(_KILL_SECONDS * 1000)
            return
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _KILL_SECONDS
        while _may_live(pid, lambda _: True) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """Give a file descriptor that stands for this very process, None where there can be none.

    Raises ProcessLookupError if the process is gone.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # no descriptor is left, or the kernel is older than 5.3
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


@functools.cache
def _place() -> tuple[str, str]:
    """Return the boot and the pid namespace in which our process numbers mean something; '' if not known."""
    boot = namespace = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").replace("-", "").strip()
    with contextlib.suppress(OSError):
        namespace = "".join(filter(str.isdigit, str(Path("/proc/self/ns/pid").readlink())))
    return boot, namespace


def _has_ended(fields: dict[int, str]) -> bool:
    """Whether these are of a zombie. A leader that ended before its threads looks like one (field 20)."""
    return fields[3] in "ZXx" and int(fields[20]) <= 1


def _may_live(pid: int, which: Callable[[dict[int, str]], bool]) -> bool:
    """Return whether a process of ours lives for which `which` says True of its fields, or may live."""
    try:
        fields = read_stat(pid)
    except PermissionError:  # another user's
        return False
    except OSError:
        return True
    return fields is not None and not _has_ended(fields) and which(fields)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - faster
