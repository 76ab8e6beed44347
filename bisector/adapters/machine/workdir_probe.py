"""Asks a machine whether the workload's folder can be written, and which of its processes cannot be ended.

Silence proves nothing: a disk with gigabytes to write is slow, a network drops packets. What counts against a
disk is that the machine says so.
"""

from __future__ import annotations

import re

from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system.channel import LineClosed, LineSilent
from bisector.adapters.system.ssh import AuthenticationFailed, SSHRefused
from bisector.errors import InfrastructureError
from bisector.linux.console_text import clean_text

_OUT_OF_REACH = (SSHRefused, LineClosed, LineSilent, AuthenticationFailed)

_WRITE = """
export LC_ALL=C
file=$1/.probe
set -C # a link that another user has put there is not followed
mkdir -p "$1" && rm -f "$file" && echo perfbisect | dd conv=fsync >"$file" || exit
[ "$(cat "$file")" = perfbisect ] || { echo "what was written is not read back"; exit 1; }
rm "$file"
"""
"""One file is written out: a `sync` of all would wait for whatever else is still to be written."""

_DISK_LOST = re.compile(
    r"Input/output error|\bI/O error|Read-only file system|No such device|Structure needs cleaning"
    r"|Bad message|Bus error|^what was written is not read back$"
)
"""What programs say once a disk fails (glibc, musl). Bus error: a page of a program cannot be read."""

_STATISTICS = re.compile(r"\d+\+\d+ records (?:in|out)|\d+ bytes .*copied")
"""What dd prints below its reason; an old one has no option to leave it out."""

_HUNG_SECONDS = 120
"""As long as Linux waits before it calls a task hung. On a slow disk a killed process ends when its data is
written."""

_KILL = r"""
cd / # the login may begin in that folder
below() {
    for folder in /proc/[0-9]*; do
        case "$(readlink "$folder/cwd")" in "$1" | "$1"/*) echo "${folder#/proc/}" ;; esac
    done 2>/dev/null
}
waits=$2
while left=$(below "$1") && [ -n "$left" ] && [ "$waits" -gt 0 ]; do
    for pid in $left; do kill -9 "$pid" 2>/dev/null; done
    sleep 1
    waits=$((waits - 1))
done
for pid in $left; do
    state=$(sed -n 's/^State:[[:space:]]*\([^XZ[:space:]]\)/\1/p' /proc/"$pid"/status)
    [ -z "$state" ] || echo "$(cat /proc/"$pid"/comm) ($state)"
done 2>/dev/null
true
"""
"""What has ended since it was listed has no state any more, or is dead (X, Z)."""

_SHOWN_CHARACTERS = 300
"""Of what a machine says that an error quotes."""


def why_not_writable(reach: MachineReach, workdir: str) -> str:
    """Return why nothing can be written where the workload goes, '' where it can.

    Raises InfrastructureError where that is not known: nobody answers, or not in time.
    """
    try:
        reach.run(["sh", "-c", _WRITE, "sh", workdir])
    except _OUT_OF_REACH:
        raise
    except InfrastructureError as error:
        lines = [line.strip() for line in clean_text(error.details).splitlines()]
        messages = [line for line in lines if line and _STATISTICS.match(line) is None]
        reasons = [line for line in messages if is_lost_disk(line)] or messages or [error.message]
        return reasons[-1][-_SHOWN_CHARACTERS:]
    return ""


def is_lost_disk(reason: str) -> bool:
    """Return whether the reason is that of a failing disk, not of a full one or of missing permission."""
    return _DISK_LOST.search(reason) is not None


def survivors(reach: MachineReach, workdir: str) -> str:
    """End what runs of the workload; return what does not end. Raises InfrastructureError: nobody knows."""
    output = reach.run(
        ["sh", "-c", _KILL, "sh", workdir, str(_HUNG_SECONDS)], timeout=_HUNG_SECONDS + reach.probe_seconds
    )
    return ", ".join(clean_text(output).splitlines())[:_SHOWN_CHARACTERS]
