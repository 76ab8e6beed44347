"""Folded stacks, the form that flame graph tools pass around: 'task;outer;inner 42' a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bisector.adapters.parsers.input_text import NUMBER, malformed, parse_weight, shown
from bisector.linux.profile import Origin, Profile, Stack, Symbol, folded, source_name

_COUNT = re.compile(NUMBER)
_ANNOTATION = re.compile(r"_\[([kijw])\]$")
"""Of a function of the kernel, an inlined, a compiled and a waker's one: flamegraph.pl colours by them, and
shows names without."""


def looks_like(text: str) -> bool:
    """Return whether every line that says anything is a folded stack."""
    lines = [x.strip() for x in text.splitlines() if x.strip() and not x.startswith("#")]
    return bool(lines) and all(map(_parts, lines))


def read(text: str, where: str) -> Profile:
    """Read folded stacks; the first frame is the task, a frame ending in _[k] is the kernel's.

    One ending in _[i] was inlined into the frame before it, and is of the kernel if that is. Raises
    RequestError.
    """
    stacks: dict[Stack, float] = {}
    whole_numbers = True
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        parts = _parts(line)
        if parts is None:
            raise malformed(
                f"{where}:{number}", f"{shown(line)} is not a folded stack", "task;outer;inner 42"
            )
        count = parse_weight(parts[1], f"{where}:{number}")
        whole_numbers = whole_numbers and count.is_integer()
        task, *frames = parts[0].split(";")
        stack = (Symbol(task, "task"), *_symbols(frames))
        stacks[stack] = stacks.get(stack, 0.0) + count
    own, whole = folded(stacks)
    total = sum(stacks.values())
    if total == 0:
        raise malformed(where, "no stack was seen more than no times", "task;outer;inner 42")
    return Profile(where, own, whole, stacks, total, round(total) if whole_numbers else 0)


def _parts(line: str) -> tuple[str, str] | None:
    """Return the frames and the count of a line, None if it is not a folded stack."""
    frames, *count = line.rsplit(None, 1)
    return (frames, count[0]) if count and ";" in frames[1:-1] and _COUNT.fullmatch(count[0]) else None


def _symbols(frames: Iterable[str]) -> Iterator[Symbol]:
    origin: Origin = ""
    for frame in frames:
        found = _ANNOTATION.search(frame)
        kind = found[1] if found is not None else ""
        if kind != "i":
            origin = "kernel" if kind == "k" else ""
        yield Symbol(source_name(_ANNOTATION.sub("", frame)), origin)
