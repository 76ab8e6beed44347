"""The counters in files of /proc and of cgroups, and their changes between two readings.

Three shapes cover them: 'name value' (vmstat, meminfo, cpu.stat), 'name a b c' with a meaning for each column
(stat, diskstats), and a table with a column for each CPU (interrupts, softirqs), which is summed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bisector.model.facts import MonitorValue

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    # Documentation/filesystems/proc.rst and admin-guide/iostats.rst
    "cpu": ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"),
    "diskstats": (
        *("reads", "reads merged", "sectors read", "ms reading", "writes", "writes merged"),
        *("sectors written", "ms writing", "in flight", "ms busy", "ms weighted"),
        *("discards", "discards merged", "sectors discarded", "ms discarding", "flushes", "ms flushing"),
    ),
}
_NUMBER = re.compile(r"-?[0-9]{1,20}")
"""Counters have 64 bits, which is 20 digits."""


def changes(path: str, before: str, after: str) -> Iterator[MonitorValue]:
    """Yield the change of every counter that changed, named by the file and the counter."""
    old = dict(_numbers(path, before))
    for name, value in _numbers(path, after):
        change = value - old.get(name, 0)
        if change != 0:
            yield MonitorValue(f"{path.rsplit('/', 1)[-1]} {name}", change)


def _numbers(path: str, text: str) -> Iterator[tuple[str, int]]:
    kind = path.rsplit("/", 1)[-1]
    lines = text.splitlines()
    table = bool(lines) and lines[0].split()[:1] == ["CPU0"]  # a line without numbers
    for line in lines:
        words = line.split()
        if len(words) < (3 if kind == "diskstats" else 2):
            continue
        if kind == "diskstats":
            yield from _named(words[2], words[3:], _COLUMNS["diskstats"])
            continue
        name, rest = words[0].rstrip(":"), words[1:]
        count = next((i for i, word in enumerate(rest) if not _NUMBER.fullmatch(word)), len(rest))
        values = rest[:count]
        if not values:
            continue
        if table:
            about = " ".join(rest[count:])
            yield (f"{name} ({about})" if about else name), sum(map(int, values))
        elif len(values) == 1 or name in ("intr", "softirq"):  # the first of these is the sum of the rest
            yield name, int(values[0])
        else:
            yield from _named(name, values, _COLUMNS["cpu"] if kind == "stat" else ())


def _named(name: str, values: list[str], columns: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for number, value in enumerate(values):
        if _NUMBER.fullmatch(value):
            yield f"{name} {columns[number] if number < len(columns) else number + 1}", int(value)
