"""Finding every process that one of ours started, and ending those that outlived it.

A process group is not enough: Ansible's workers and OpenSSH's connection masters leave it by setsid. So every
process that `command.stream_command` starts inherits a mark in its environment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""Time between SIGTERM and SIGKILL: long enough for make and QEMU to remove their temporary files."""

MARK = "PERFBISECT_PROCESS"
"""Environment variable that every descendant inherits, so that those which left the process group (Ansible's
workers and OpenSSH's connection masters call setsid) are found and ended as well. A list joined by ':', each
'<our pid>-<its start time>.<random>', so that what a killed perfbisect left can be told from what lives."""

_PF_KTHREAD = 0x00200000
"""Set in field 9 (flags) of a kernel thread's stat, which never has an environment: include/linux/sched.h."""


def end_marked(mark: str) -> int:
    """End every process of this machine with `mark` in its environment or command line; return how many.

    The command line as well, because OpenSSH's connection masters overwrite their environment with their
    title, which names their socket. SIGTERM first, SIGKILL after `GRACE_SECONDS`; looks again until none is
    left, for a process may fork while the list is read, or be between two programs.
    """
    seen: set[int] = set()
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        environments = _read_environments()
        pids = _filter_marked(mark, environments)
        silent = (pid for pid, environment in environments.items() if not environment)
        if not pids and not any(map(_is_between_programs, silent)):
            return len(seen)
        late = time.monotonic() > deadline
        for pid in pids:
            if late or pid not in seen:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        seen.update(pids)
        if time.monotonic() > deadline + GRACE_SECONDS:
            if pids:
                log.warning("processes %s do not end", sorted(pids))
            return len(seen)
        time.sleep(0.02)


def end_orphans() -> int:
    """End what `stream_command` of a perfbisect that SIGKILL ended left running; return how many.

    To be called before work is taken up again: an orphaned build would race with its second attempt.
    """
    marks: set[str] = set()
    for environment in _read_environments().values():
        for variable in environment.split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name.decode(errors="replace") == MARK:
                marks.update(value.decode(errors="replace").split(":"))
    ended = 0
    for mark in marks:
        owner = mark.split(".", 1)[0]
        pid = owner.split("-", 1)[0]
        if pid.isdigit() and identity(int(pid)) != owner:
            ended += end_marked(mark)
    return ended


def identity(pid: int) -> str:
    """Return '<pid>-<start time>' of a process, which is never used twice; without a time if it is gone."""
    fields = _read_stat(pid)
    return f"{pid}-{fields[22]}" if fields else f"{pid}-"


def find_marked(mark: str) -> set[int]:
    """Return the processes with `mark` in their environment or command line."""
    return _filter_marked(mark, _read_environments())


def _filter_marked(mark: str, environments: Mapping[int, bytes]) -> set[int]:
    """Return the processes with `mark` in these environments or in their command line."""
    needle = mark.encode()
    found = {pid for pid, environment in environments.items() if needle in environment}
    return found | {pid for pid, command in _read_environments("cmdline").items() if needle in command}


def _is_between_programs(pid: int) -> bool:
    """Tell whether a process whose environment was read as empty may have one all the same.

    Within execve the kernel first gives a process its new memory and only later says where the environment
    lies in it (proc(5), stat fields 50 and 51, env_start and env_end: 0 until then), and what was opened of
    the memory before reads as empty. A marked process looks unmarked for that moment.
    """
    fields = _read_stat(pid)
    if not fields or fields[3] in "ZXx" or int(fields[9]) & _PF_KTHREAD:
        return False
    return fields[51] == "0" or fields[50] != fields[51]


def _read_stat(pid: int) -> dict[int, str]:
    """Return the fields of a process by their numbers in proc(5), from the third on; {} if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(enumerate(stat.rsplit(")", 1)[1].split(), start=3))  # the second, the name, may hold blanks


def _read_environments(file: str = "environ") -> dict[int, bytes]:
    """Return the environment (or another file) of every other process that we may look into."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # gone meanwhile, or another user's
                found[int(entry.name)] = (entry / file).read_bytes()
    return found
