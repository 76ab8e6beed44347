"""Output of `perf script`: every sample with its call chain; the richest form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bisector.adapters.parsers.input_text import malformed, parse_weight
from bisector.linux.profile import Origin, Profile, Stack, Symbol, folded, source_name

FIELDS = "comm,pid,period,event,ip,sym,dso"
"""What `perf script` is asked for (-F): all that is read here."""

SCRIPT = "perf.script"
"""Its output beside the recording, made where the symbols were; see adapters/agent/monitors."""

_HEAD = re.compile(
    # A run of blanks is taken whole (++), and only from its start: else a long line takes quadratic time.
    r"\s*+(?P<comm>\S.*?)(?<=\S)\s++(?P<pid>-?\d++)(?:/-?\d++)?\s++(?:\[\d++\]\s++)?(?:[\d.]++:\s++)?"
    r"(?:(?P<period>\d++)\s++)?(?P<event>[A-Za-z][\w\-/.,=:]*?):(?:\s+(?P<rest>\S.*))?\s*"
)
_FRAME = re.compile(
    # The binary is behind the last bracket, or is a path with brackets of its own: symbols of C++ have
    # blanks and brackets, too, as in 'Call<int (char)>::run'.
    r"\s*+(?P<ip>[0-9a-f]++)\s++(?P<symbol>\S.*?)(?:\+0x[0-9a-f]++)?(?<=\S)\s++"
    r"\((?P<dso>[/\[].*|[^()]*(?:\(deleted\))?)\)"
)
_INLINED = "inlined"
"""What stands for the binary of a function that was compiled into the one of the next frame."""
_WORKER = re.compile(r"^(kworker|ksoftirqd|migration|cpuhp|rcuop|idle_inject)/.*")
_KERNEL = re.compile(r"^\[(kernel|guest\.kernel|[\w.-]+)\]|vmlinux|\.ko(\.\w+)?$")
"""Modules stand in brackets or end in .ko; [vdso], [heap] and [stack] are programs', see below."""
_USER_BRACKETS = ("[vdso]", "[heap]", "[stack]", "[unknown]", "[vsyscall]")


@dataclass(slots=True)
class _Sample:
    comm: str
    event: str
    period: float
    frames: list[Symbol]  # innermost first
    inlined: int = 0  # of the last frames: their binary is that of the next one


def looks_like(text: str) -> bool:
    """Return whether this is perf script's text: a sample's head, then frames or a frame in the head."""
    lines = [x for x in text.splitlines()[:50] if x.strip() and not x.startswith("#")]
    if not lines:
        return False
    head = _HEAD.fullmatch(lines[0])
    if head is None:
        return False
    return bool((head["rest"] and _frame(head["rest"])) or (len(lines) > 1 and _frame(lines[1])))


def origin_of(dso: str) -> Origin:
    """Return whose code a binary is: the kernel's (modules too) or a program's."""
    if dso in _USER_BRACKETS:
        return "user"
    return "kernel" if _KERNEL.search(dso) else "user"


def read(text: str, where: str) -> Profile:
    """Read perf script's text. Raises RequestError where no sample is in it.

    A weight is the sample's period, 1 where there is none. With several events in a
    recording the one with most samples is taken, and a note says so.
    """
    by_event: dict[str, list[_Sample]] = {}
    for sample in _samples(text, where):
        by_event.setdefault(sample.event, []).append(sample)
    if not by_event:
        raise malformed(where, "there is no sample in it", "perf script -i perf.data")
    event = max(by_event, key=lambda e: len(by_event[e]))
    stacks: dict[Stack, float] = {}
    samples = [sample for sample in by_event[event] if sample.frames]
    bare = len(by_event[event]) - len(samples)
    chains = any(len(sample.frames) > 1 for sample in samples)
    for sample in samples:
        stack = (Symbol(sample.comm, "task"), *reversed(sample.frames))
        stacks[stack] = stacks.get(stack, 0.0) + sample.period
    total = sum(stacks.values())
    if total == 0:
        raise malformed(where, "no sample in it has a symbol and a weight", "perf script -i perf.data")
    own, whole = folded(stacks)
    notes = []
    if len(by_event) > 1:
        notes.append(f"of {len(by_event)} events {event} is shown, which has most samples")
    if bare:
        notes.append(f"{bare} samples without any symbol are left out")
    return Profile(
        where,
        own,
        whole if chains else {},
        stacks if chains else {},
        total,
        len(samples),
        event=plain_event(event),
        notes=tuple(notes),
    )


def _samples(text: str, where: str) -> Iterator[_Sample]:
    current: _Sample | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            if current is not None:
                yield current
            current = None
            continue
        frame = _frame(line)
        if frame is not None and current is not None and not _is_whole_sample(line):
            _add_frame(current, frame)
            continue
        head = _HEAD.fullmatch(line)
        if head is None:
            continue
        if current is not None:
            yield current
        period = parse_weight(head["period"] or "1", f"{where}:{number}")
        comm = _WORKER.sub(r"\1", head["comm"])
        current = _Sample(comm, head["event"], period, [])
        rest = _frame(head["rest"]) if head["rest"] else None
        if rest is not None:
            _add_frame(current, rest)
    if current is not None:
        yield current


def _frame(line: str) -> re.Match[str] | None:
    """Return the parts of a frame's line. Every other line is refused by its end, in no time."""
    line = line.rstrip()
    return _FRAME.fullmatch(line) if line.endswith(")") else None


def _is_whole_sample(line: str) -> bool:
    """Return whether a line is a head with its frame: commands may look like addresses, as dd and cc1 do."""
    head = _HEAD.fullmatch(line) if ": " in line else None
    return head is not None and head["rest"] is not None and _frame(head["rest"]) is not None


def _add_frame(sample: _Sample, frame: re.Match[str]) -> None:
    """Add a frame; what unwinding ends in ('[unknown]' beyond the first frame) says nothing."""
    if frame["symbol"] == "[unknown]" and sample.frames:
        return
    origin = origin_of(frame["dso"])
    sample.frames.append(Symbol(source_name(frame["symbol"]), origin))
    if frame["dso"] == _INLINED:
        sample.inlined += 1
        return
    for at in range(-1 - sample.inlined, -1):
        sample.frames[at] = Symbol(sample.frames[at].name, origin)
    sample.inlined = 0


def plain_event(event: str) -> str:
    """Return an event without precision and privilege: 'cycles:ppp' and 'cycles:u' are cycles."""
    return re.sub(r":[ukhGHpPSD]*$", "", event)
