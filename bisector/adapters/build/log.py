"""Why a build failed, read from its log: the commit's fault, or that of the machine it was built on. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bisector.adapters.system.disk_usage import DISK_FULL

_LINE_CHARACTERS_MAX = 2000
"""How much of a line is searched: on lines made for that purpose patterns take quadratic time."""

Blame = Literal["kernel", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Failure:
    """blame: who is at fault; what: in a few words; line: the first line of the log that says so.

    certain: the line is what a compiler, a linker or make says of the sources. A failure of the commit that
    is not certain is believed once a second build has failed, too.
    """

    blame: Blame
    what: str
    line: str
    certain: bool = True


_ENDED = "the build was ended by a signal, from the system or another process"
_TOOL = r"(?:/(?!linux/|\S*/builder/source/)[\w./+-]+|[\w.+-]+)"
"""A program of the system. One whose path leads into the tree is the commit's."""

_MACHINE: tuple[tuple[str, str], ...] = (
    (DISK_FULL, "the disk is full"),
    (
        r"Read-only file system|Input/output error|Stale (?:NFS )?file handle|Structure needs cleaning",
        "the disk fails",
    ),
    # A segmentation fault is left out: it may be a defect of the compiler that the commit's code meets.
    (
        r"\b(?:Killed|Terminated|Bus error|Hangup) signal terminated program|virtual memory exhausted"
        r"|internal compiler error: (?:Killed|Terminated|Bus error)\b"
        r"|unable to execute command: (?:Killed|Terminated|Bus error)|terminated with signal (?:1|7|9|15)\b"
        r"|\bsignal: 9, SIGKILL",
        "a compiler was killed or ran out of memory",
    ),
    # gcc compiles a file again on which it broke, and says this if it breaks differently.
    (r"The bug is not reproducible, so it is likely a hardware or OS problem", "a compiler fails by chance"),
    (
        r"out of memory allocating|Cannot allocate memory|[Mm]emory exhausted|\bstd::bad_alloc"
        r"|^LLVM ERROR: out of memory",
        "out of memory",
    ),
    (
        r"Resource temporarily unavailable|\b[Cc]annot fork\b|Too many open files",
        "the system refuses more processes or files",
    ),
    (
        # 128 and the signal: what a shell says of a command that was killed.
        r"\] (?:Killed|Terminated|Hangup|Interrupt)\b|\] Error (?:129|130|137|143)\b"
        r"|received signal \d+; terminating",
        _ENDED,
    ),
    (
        rf"(?:^|: )(?:line )?\d+: {_TOOL}: (?:not found|command not found)"
        rf"|^/bin/\w*sh: {_TOOL}: command not found",
        "a tool is missing",
    ),
    (
        rf"(?:make(?:\[\d+\])?|^(?:/usr/bin/)?env): [^\w./]?{_TOOL}[^\w./]?: No such file or directory",
        "a tool is missing",
    ),
    (
        r"fatal error: (?:gelf|libelf|openssl/\w+|zlib|gmp|mpc|mpfr)\.h: No such file",
        "a library to build with is missing",
    ),
    (r"compiler .*not found|CompilerNotFound", "the compiler is missing"),
    (r"ccache: error", "ccache fails"),
    (r"^perfbisect: make was ended", _ENDED),  # by compile.sh, where nothing else tells why
)
"""Signs of a machine at fault. They win over errors of the compiler, because a full disk or killed compiler
causes many of those."""

_KERNEL: tuple[tuple[str, str, bool], ...] = (
    (r"\binternal compiler error\b", "the compiler breaks on it", False),
    (
        r"\bKconfig\b.*(?:syntax error|recursive dependency|unknown statement)",
        "its configuration is broken",
        True,
    ),
    (r"(?:^|[^-\w])error: |: Error: ", "it does not compile", True),
    (
        r"undefined reference to|undefined symbol|(?<!warning: )multiple definition of",
        "it does not link",
        True,
    ),
    (r"\bld(?:\.\w+)?: (?!.*\b(?:warning|NOTE): )", "it does not link", False),
    (
        r"No rule to make target|\*\*\* .*(?:Stop|multiple target patterns|missing separator)",
        "its makefiles are broken",
        True,
    ),
    (r"\*\*\* \[|E: expected artifact", "a step of its build fails", False),
)
"""Signs of a broken commit, the most telling first, and whether they are certain."""

_QUOTED = re.compile(r"\s*\d*\s*\|")
"""Begins a line of source that a compiler shows; 'out of memory' there is the kernel's text."""
_POINTER = re.compile(r"\s*[~^]+\s*$")
"""What compilers before gcc 9 put below such a line."""


def judge(log: str) -> Failure:
    """Return who is to blame for a failed build and the first line that shows it. Any text will do.

    A log without any known sign is blamed on the kernel, but not for certain: make ended with an error, and
    nothing points elsewhere.
    """
    lines = _lines(log)
    lines = [
        line
        for line, after in itertools.zip_longest(lines, lines[1:], fillvalue="")
        if not _QUOTED.match(line) and not _POINTER.match(after)
    ]
    for pattern, what in _MACHINE:
        if (found := _first(pattern, lines)) is not None:
            return Failure("infrastructure", what, found)
    for pattern, what, certain in _KERNEL:
        if (found := _first(pattern, lines)) is not None:
            return Failure("kernel", what, found, certain)
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return Failure("kernel", "its build fails", last, certain=False)


def _first(pattern: str, lines: Iterable[str]) -> str | None:
    expression = re.compile(pattern)
    return next((line.strip() for line in lines if expression.search(line)), None)


def _lines(log: str) -> list[str]:
    return [line[:_LINE_CHARACTERS_MAX] for line in log.splitlines()]


def without_folder(line: str) -> str:
    """Return a line of a log with paths as they are in the kernel's tree, not on the builder."""
    return re.sub(r"[\w./+~-]*/builder/source/|(?<![\w./+~-])/linux/", "", line)


def excerpt(log: str, line: str, after: int = 6) -> str:
    """Return the telling line with a few that follow it, where compilers show the code."""
    lines = _lines(log)
    for number, candidate in enumerate(lines):
        if candidate.strip() == line:
            return "\n".join(lines[number : number + 1 + after])
    return line
