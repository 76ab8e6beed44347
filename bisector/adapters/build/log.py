"""Why a build failed, read from its log: the commit's fault, or that of the machine it was built on. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_LINE_CHARACTERS_MAX = 2000
"""Of a longer line no more is looked at: patterns take the square of its length on lines made for that."""

Blame = Literal["kernel", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Failure:
    """blame: who is at fault; what: in a few words; line: the first line of the log that says so."""

    blame: Blame
    what: str
    line: str


_ENDED = "the build was ended by a signal, from the system or another process"

_MACHINE: tuple[tuple[str, str], ...] = (
    (r"No space left on device|Disk quota exceeded", "the disk is full"),
    (r"Read-only file system|Input/output error", "the disk fails"),
    (
        r"Killed signal terminated program|virtual memory exhausted",
        "a compiler was killed or ran out of memory",
    ),
    (r"out of memory allocating|Cannot allocate memory|memory exhausted", "out of memory"),
    (
        # 128 and the signal: what a shell says of a command that was killed.
        r"\] (?:Killed|Terminated|Hangup|Interrupt)\b|\] Error (?:129|130|137|143)\b"
        r"|received signal \d+; terminating",
        _ENDED,
    ),
    (r"(?:^|: )(?:line )?\d+: [\w./+-]+: (?:not found|command not found)", "a tool is missing"),
    (r"make(?:\[\d+\])?: [\w./+-]+: No such file or directory", "a tool is missing"),
    (r"fatal error: (?:gelf|libelf|openssl/\w+|zlib)\.h: No such file", "a library to build with is missing"),
    (r"compiler .*not found|CompilerNotFound", "the compiler is missing"),
    (r"ccache: error", "ccache fails"),
    (r"^perfbisect: make was ended", _ENDED),  # by compile.sh, where nothing else tells why
)
"""Signs of a machine at fault. They win over errors of the compiler, because a full disk or killed compiler
causes many of those."""

_KERNEL: tuple[tuple[str, str], ...] = (
    (r"\binternal compiler error\b", "the compiler breaks on it"),
    (r"\bKconfig\b.*(?:syntax error|recursive dependency|unknown statement)", "its configuration is broken"),
    (r"(?:^|[^-\w])error: |: Error: ", "it does not compile"),
    (r"undefined reference to|undefined symbol|(?<!warning: )multiple definition of", "it does not link"),
    (r"\bld(?:\.\w+)?: (?!.*\b(?:warning|NOTE): )", "it does not link"),
    (
        r"No rule to make target|\*\*\* .*(?:Stop|multiple target patterns|missing separator)",
        "its makefiles are broken",
    ),
    (r"\*\*\* \[|E: expected artifact", "a step of its build fails"),
)
"""Signs of a broken commit, the most telling first."""


def judge(log: str) -> Failure:
    """Return who is to blame for a failed build and the first line that tells. Any text will do.

    A log that says nothing known is the kernel's: make ended with an error and nothing points elsewhere.
    """
    lines = _lines(log)
    tables: tuple[tuple[Blame, tuple[tuple[str, str], ...]], ...]
    tables = (("infrastructure", _MACHINE), ("kernel", _KERNEL))
    for blame, signs in tables:
        for pattern, what in signs:
            expression = re.compile(pattern)
            for line in lines:
                if expression.search(line):
                    return Failure(blame, what, line.strip())
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return Failure("kernel", "its build fails", last)


def _lines(log: str) -> list[str]:
    return [line[:_LINE_CHARACTERS_MAX] for line in log.splitlines()]


def without_folder(line: str) -> str:
    """Return a line of a log with paths as they are in the kernel's tree, not on the builder."""
    return re.sub(r"[\w./+~-]*/builder/source/", "", line)


def excerpt(log: str, line: str, after: int = 6) -> str:
    """Return the telling line with a few that follow it, where compilers show the code."""
    lines = _lines(log)
    for number, candidate in enumerate(lines):
        if candidate.strip() == line:
            return "\n".join(lines[number : number + 1 + after])
    return line
