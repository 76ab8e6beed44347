"""Folded stacks, the form that flame graph tools pass around: 'task;outer;inner 42' a line."""

from __future__ import annotations

import re

from bisector.adapters.parsers.input_text import NUMBER, malformed
from bisector.linux.profile import Origin, Profile, Stack, Symbol, folded, source_name

_LINE = re.compile(rf"(?P<frames>\S.*;.*\S)\s+(?P<count>{NUMBER})")


def looks_like(text: str) -> bool:
    """Return whether every line that says anything is a folded stack."""
    lines = [x.strip() for x in text.splitlines() if x.strip() and not x.startswith("#")]
    return bool(lines) and all(_LINE.fullmatch(x) for x in lines)


def read(text: str, where: str) -> Profile:
    """Read folded stacks; the first frame is the task, a frame ending in _[k] is the kernel's."""
    stacks: dict[Stack, float] = {}
    whole_numbers = True
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise malformed(f"{where}:{number}", f"'{line[:60]}' is no folded stack", "task;outer;inner 42")
        count = float(match["count"])
        whole_numbers = whole_numbers and count.is_integer()
        task, *frames = match["frames"].split(";")
        stack = (Symbol(task, "task"), *(_symbol(f) for f in frames))
        stacks[stack] = stacks.get(stack, 0.0) + count
    own, whole = folded(stacks)
    total = sum(stacks.values())
    return Profile(where, own, whole, stacks, total, round(total) if whole_numbers else 0)


def _symbol(frame: str) -> Symbol:
    origin: Origin = "kernel" if frame.endswith("_[k]") else ""
    return Symbol(source_name(frame.removesuffix("_[k]")), origin)
