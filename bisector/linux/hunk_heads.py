"""Functions and files that commits change, by the heads of hunks in one stream of `git log -p`.

A hunk's head names the function before it, as git guesses: cheap for a long range, whose sources cannot be
parsed commit by commit. A file that may change any function, such as a Makefile or a header, is kept as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bisector.model.facts import TouchedCode

COMMIT = "\x01commit "
"""What begins a commit in the stream: no line of a diff begins with it."""

_HUNK = re.compile(r"^(@@+)(?: -\S+)+ \+\S+ \1 (?P<head>.+)$")
"""A merge's beside its parents has one @ and one place more for each further parent."""
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(")
_SYSCALL = re.compile(r"^(?:COMPAT_)?SYSCALL_DEFINE\d\s*\(\s*(\w+)")
_DEFINED = re.compile(r"^[+-](?!\s|[+-]{2} |#|/|\*)[\w\s*]*?\b([A-Za-z_]\w*)\s*\([^;]*$")
_ANYTHING = re.compile(r"(?:^|/)(?:Kconfig[^/]*|Makefile[^/]*|Kbuild)$|\.(?:h|S|lds|lds\.S|inc)$|_defconfig$")
"""Files that may change functions elsewhere: configuration, rules, headers, macros, linker scripts."""

_NOT_FUNCTIONS = frozenset(
    ["if", "for", "while", "switch", "return", "sizeof", "defined", "struct", "DEFINE"]
)


@dataclass(slots=True)
class _Reading:
    sha: str
    path: str = ""
    functions: set[str] = field(default_factory=set)
    anything: set[str] = field(default_factory=set)

    def take(self, line: str) -> None:
        if line.startswith(("--- a/", "+++ b/")):
            self.path = line[6:]
            if _ANYTHING.search(self.path):
                self.anything.add(self.path)
        elif self.path.endswith((".c", ".h", ".S")) and (head := _HUNK.match(line) or _DEFINED.match(line)):
            self.functions |= _names(head["head"] if "head" in head.groupdict() else line[1:])


def _names(head: str) -> set[str]:
    """Return the function whose head this is; a system call goes by the names of its symbols."""
    call = _SYSCALL.match(head)
    if call is not None:
        return {prefix + call[1] for prefix in ("__x64_sys_", "__do_sys_", "__se_sys_", "sys_")}
    found = _FUNCTION.search(head)
    return {found[1]} if found is not None and found[1] not in _NOT_FUNCTIONS and "=" not in head else set()


def read(lines: Iterable[str]) -> Iterator[TouchedCode]:
    """Yield each commit of the stream: a line of COMMIT and its id, then its diff (git log -p -U0)."""
    reading: _Reading | None = None
    for line in lines:
        if line.startswith(COMMIT):
            if reading is not None:
                yield _touched_code(reading)
            reading = _Reading(line.removeprefix(COMMIT).strip())
        elif reading is not None:
            reading.take(line.rstrip("\n"))
    if reading is not None:
        yield _touched_code(reading)


def _touched_code(reading: _Reading) -> TouchedCode:
    return TouchedCode(reading.sha, frozenset(reading.functions), frozenset(reading.anything))
