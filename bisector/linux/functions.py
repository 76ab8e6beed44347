"""Functions of C sources that a change touches, found in the sources themselves.

The only assumption is kernel style: the braces of a function's body are in the first column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SYSCALL = re.compile(r"^(?:COMPAT_)?SYSCALL_DEFINE\d\s*\(\s*(\w+)")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NOT_FUNCTIONS = frozenset(
    [
        *("if", "for", "while", "switch", "return", "sizeof", "defined", "typeof", "__typeof__"),
        *("__attribute__", "__aligned", "__section", "__releases", "__acquires", "__must_hold"),
        *("__printf", "__scanf"),
    ]
)
_HUNK = re.compile(r"^@@ -(?P<old>\d+)(?:,(?P<olds>\d+))? \+(?P<new>\d+)(?:,(?P<news>\d+))? @@")


def functions_at(text: str, lines: Iterable[int]) -> set[str]:
    """Return the functions whose head or body holds one of these lines (counted from 1).

    A system call that a macro defines goes by the names of its symbols.
    """
    source = text.splitlines()
    wanted = {n for n in lines if 1 <= n <= len(source)}
    found: set[str] = set()
    for first, last, names in _bodies(source):
        if any(first <= n <= last for n in wanted):
            found.update(names)
    return found


def _bodies(source: list[str]) -> Iterable[tuple[int, int, tuple[str, ...]]]:
    """Return (first line of the head, last line, names) of each function."""
    start = None
    for number, line in enumerate(source, start=1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start is not None:
            first, head = _head(source, start)
            names = _names(head)
            if names:
                yield first, number, names
            start = None


def _head(source: list[str], brace: int) -> tuple[int, str]:
    """Return (its first line, its text) of the head above a body's brace."""
    first = brace
    while first > 1:
        above = source[first - 2]
        if not above.strip() or above.startswith(("}", "#")) or above.rstrip().endswith((";", "*/", "\\")):
            break
        first -= 1
    return first, " ".join(source[first - 1 : brace - 1])


def _names(head: str) -> tuple[str, ...]:
    call = _SYSCALL.match(head.strip())
    if call is not None:
        name = call[1]
        return tuple(p + name for p in ("__x64_sys_", "__do_sys_", "__se_sys_", "sys_", "SyS_"))
    if "=" in head.split("(")[0]:
        return ()  # an initialiser
    for match in _NAME.finditer(head):
        if match[1] not in _NOT_FUNCTIONS:
            return (match[1],)
    return ()


def changed_lines(diff: str) -> tuple[set[int], set[int]]:
    """Return (removed lines, added lines) of one file's diff without context (git diff -U0).

    Removed lines are numbered as in the old file, added lines as in the new one.
    """
    old: set[int] = set()
    new: set[int] = set()
    for line in diff.splitlines():
        match = _HUNK.match(line)
        if match is not None:
            old |= _span(match["old"], match["olds"])
            new |= _span(match["new"], match["news"])
    return old, new


def _span(first: str, count: str | None) -> set[int]:
    return set(range(int(first), int(first) + (1 if count is None else int(count))))
