"""What a kernel's console says about its health; pure.

`death` recognises a kernel that has died, `stage` how far a boot came, `tail` what a person wants to read.
Flags of a single run (WARN, stall, OOM) come from the kernel log inside the guest; see session.py.
"""

from __future__ import annotations

import re
from typing import Literal

Stage = Literal["silent", "kernel", "init", "ready", "not-ready"]
"""nothing was said; the kernel speaks; our init runs; sshd listens or the agent starts; init gave that up."""

ENDED_ITSELF = "the guest ended itself"

_DEATHS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Kernel panic - not syncing: (?P<why>.*)"), "kernel panic: {why}"),
    (re.compile(r"\bOops: (?P<why>.*)"), "kernel oops: {why}"),
    (re.compile(r"double fault: (?P<why>.*)"), "double fault: {why}"),
    (re.compile(r"\bPANIC: (?P<why>.*)"), "early exception: {why}"),
    (re.compile(r"perfbisect: (?P<why>the agent has ended)"), f"{ENDED_ITSELF}: {{why}}"),
    (
        re.compile(r"reboot: (?P<why>System halted|Power down|Restarting system)"),
        f"{ENDED_ITSELF}: {{why}}",
    ),
)
"""In the order in which they say most."""

_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc")
"""Escape sequences of the firmware."""


def clean(data: bytes) -> str:
    """Return the console's text: no escape sequences, no carriage returns."""
    return _TERMINAL.sub("", data.decode(errors="replace")).replace("\r", "")


def death(text: str) -> str | None:
    """Say in a few words how the kernel died, or None while nothing shows that it has."""
    for pattern, words in _DEATHS:
        match = pattern.search(text)
        if match is not None:
            return words.format(**{name: value.strip() for name, value in match.groupdict().items()})
    return None


def stage(text: str) -> Stage:
    """Return how far the boot came."""
    if "perfbisect: ready" in text:
        return "ready"
    if "perfbisect: not ready" in text or "perfbisect: sshd has ended" in text:
        return "not-ready"
    if "perfbisect: init" in text:
        return "init"
    return "kernel" if text.strip() else "silent"


def tail(text: str, lines: int = 40) -> str:
    """Return the last lines, or from before the last death's first line on where that is more telling."""
    kept = [line for line in text.splitlines() if line.strip()]
    start = len(kept) - lines
    for number, line in enumerate(kept):
        if re.search(r"Kernel panic|BUG:|Oops|general protection|Unable to handle kernel|double fault", line):
            start = min(max(0, number - 5), max(0, start))
            break
    return "\n".join(kept[max(0, start) :][: 3 * lines])
