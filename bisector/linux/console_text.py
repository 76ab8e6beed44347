"""The health of a kernel by the text of its console.

`death` recognises a kernel that has died, `hardware_failed` one that the hardware killed, `stage` how far a
boot came, `tail` the lines worth reading. Flags of a single run (WARN, stall, OOM) come from the kernel log
inside the guest (adapters/agent/session).
"""

from __future__ import annotations

import re
from typing import Literal

Stage = Literal["silent", "kernel", "init", "ready", "not-ready"]
"""No output; kernel messages; our init runs; sshd listens or the agent starts; init gave that up."""

ENDED_ITSELF = "the guest ended itself"

_CRASH_MESSAGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Kernel panic - not syncing: (?P<why>.*)"), "kernel panic: {why}"),
    (re.compile(r"\bOops: (?P<why>.*)"), "kernel oops: {why}"),
    (re.compile(r"double fault: (?P<why>.*)"), "double fault: {why}"),
    (re.compile(r"\bPANIC: (?P<why>.*)"), "early exception: {why}"),
    (re.compile(r"perfbisect: (?P<why>the agent has ended)"), f"{ENDED_ITSELF}: {{why}}"),
    (re.compile(r"reboot: (?P<why>System halted|Power down|Restarting system)"), f"{ENDED_ITSELF}: {{why}}"),
)
"""(pattern, words), the most informative first."""

_PANIC_MESSAGES = ("Kernel panic - not syncing", "end Kernel panic", "Unable to mount root fs")
"""Messages after which a machine is dead for certain. An Oops is none: a machine may survive it;
guests are told to panic."""

_HARDWARE_FAILED = re.compile(
    r"Kernel panic - not syncing: .{0,80}?(?:machine check|hardware (?:memory )?error|broadcast exception)"
    r"|Kernel panic - not syncing: NMI(?: IOCK error)?: Not continuing"
    r"|\bOops: Machine check"
    r"|Machine Check Exception: "
    r"|\[Hardware Error\]: .{0,40}severity: fatal",
    re.IGNORECASE,
)
"""What Linux prints of an error that the hardware has reported and that it did not survive: machine checks,
ACPI's fatal errors (APEI), NMIs of the bus and of memory. Corrected errors are none."""

_TOO_HOT = re.compile(r"^.*\bcritical temperature reached\b.*", re.IGNORECASE | re.MULTILINE)
_SHOWN_CHARACTERS = 200
"""Of a line that an error quotes."""

_NO_TEXT = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC, such as a window's title
    r"|\x1b[ -~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
"""Escape sequences, which firmware prints, and other control characters, which a broken line brings."""


def clean(data: bytes) -> str:
    """Return the console's text: no escape sequences, no carriage returns or other control characters."""
    return clean_text(data.decode(errors="replace"))


def clean_text(text: str) -> str:
    """Do the same with text."""
    return text if text.isprintable() else _NO_TEXT.sub("", text)  # a flood of text costs nothing


def death(text: str) -> str | None:
    """Return how the kernel died, in a few words; None while it has not."""
    for pattern, words in _CRASH_MESSAGES:
        match = pattern.search(text)
        if match is not None:
            return words.format(**{name: value.strip() for name, value in match.groupdict().items()})
    return None


def is_death(text: str) -> bool:
    """Return whether a text has a message after which a machine is dead for certain."""
    return any(message in text for message in _PANIC_MESSAGES)


def hardware_failed(panic: str) -> bool:
    """Return whether a kernel's death names the hardware as its cause. panic: what it printed as it died."""
    return _HARDWARE_FAILED.search(panic) is not None


def own_shutdown(text: str) -> str:
    """Return the line in which a kernel says why it switches its machine off by itself, '' where none does.

    'reboot: Power down' is no such line: it ends each shutdown, also one that somebody has asked for.
    """
    match = _TOO_HOT.search(text)
    return match[0].strip()[:_SHOWN_CHARACTERS] if match is not None else ""


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
    """Return the last lines; from five lines before the first sign of a crash, if there is one."""
    shown = [line for line in text.splitlines() if line.strip()]
    start = len(shown) - lines
    for number, line in enumerate(shown):
        if re.search(r"Kernel panic|BUG:|Oops|general protection|Unable to handle kernel|double fault", line):
            start = min(max(0, number - 5), max(0, start))
            break
    return "\n".join(shown[max(0, start) :][: 3 * lines])
