"""Finding every process that one of ours started, and ending those that outlived it.

A process group is not enough: Ansible's workers and OpenSSH's connection masters leave it by setsid. So every
process that `command.stream_command` starts inherits a mark in its environment.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Mapping

from bisector.adapters.system.processes import GRACE_SECONDS, life, read_all, read_stat, send_signal_if_marked
from bisector.errors import InfrastructureError

log = logging.getLogger(__name__)

MARK = "PERFBISECT_STARTED_BY"
"""Environment variable that every descendant inherits, so that those which left the process group (Ansible's
workers and OpenSSH's connection masters call setsid) are found and ended as well. A list joined by ':', each
'<our identity>.<random>' (see `processes.identity`), so that what a killed perfbisect left can be told from
what lives. Until identities named boot and namespace it was PERFBISECT_PROCESS: a perfbisect of that time
takes every identity that is longer than its own for that of a dead process, and ends what is marked so."""

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
        late = time.monotonic() > deadline
        try:
            environments = read_all("environ")
            pids = _filter_marked(mark, environments)
            silent = (pid for pid, environment in environments.items() if not environment)
            if not pids and not any(map(_is_between_programs, silent)):
                return len(seen)
            for pid in pids if late else pids - seen:
                if send_signal_if_marked(pid, signal.SIGKILL if late else signal.SIGTERM, mark.encode()):
                    seen.add(pid)
            trouble = f"processes {sorted(pids)} do not end" if pids else ""
        except OSError as error:  # as without a free file descriptor, which another thread may free
            trouble = f"cannot look for processes that a command left: {error}"
        if time.monotonic() > deadline + GRACE_SECONDS:
            if trouble:
                log.warning("%s", trouble)
            return len(seen)
        time.sleep(0.02)


def end_orphans() -> int:
    """End what `stream_command` of a perfbisect that SIGKILL ended left running; return how many.

    To be called before work is taken up again: an orphaned build would race with its second attempt. What
    belongs to a process that lives, or may live, is left alone. Raises InfrastructureError.
    """
    marks: set[str] = set()
    try:
        environments = read_all("environ")
    except OSError as error:
        raise InfrastructureError(
            f"cannot look for processes that an earlier perfbisect left: {error.strerror}",
            cure="raise the limit of open files ('ulimit -n'), or end what uses them",
        ) from error
    for environment in environments.values():
        for variable in environment.split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name.decode(errors="replace") == MARK:
                marks.update(value.decode(errors="replace").split(":"))
    return sum(end_marked(mark) for mark in marks if life(mark.split(".", 1)[0]) == "dead")


def find_marked(mark: str) -> set[int]:
    """Return the processes with `mark` in their environment or command line."""
    return _filter_marked(mark, read_all("environ"))


def _filter_marked(mark: str, environments: Mapping[int, bytes]) -> set[int]:
    """Return the processes with `mark` in these environments or in their command line."""
    needle = mark.encode()
    found = {pid for pid, environment in environments.items() if needle in environment}
    return found | {pid for pid, command in read_all("cmdline").items() if needle in command}


def _is_between_programs(pid: int) -> bool:
    """Return whether a process whose environment was read as empty may have one all the same.

    Within execve the kernel first gives a process its new memory and only later says where the environment
    lies in it (proc(5), stat fields 50 and 51, env_start and env_end: 0 at first, then for a moment equal),
    and what was opened of the memory before reads as empty. A marked process looks unmarked until then. Where
    its code lies (field 26, start_code) is said last.
    """
    fields = read_stat(pid)
    if not fields or fields[3] in "ZXx" or int(fields[9]) & _PF_KTHREAD:
        return False
    return fields[26] == "0" or fields[50] != fields[51]
