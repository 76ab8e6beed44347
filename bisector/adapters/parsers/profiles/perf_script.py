"""What `perf script` prints: every sample with its call chain; the richest form of a recording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bisector.adapters.parsers.input_text import malformed
from bisector.linux.profile import Origin, Profile, Stack, Symbol, folded, source_name

FIELDS = "comm,pid,period,event,ip,sym,dso"
"""What `perf script` is asked for (-F): all that is read here."""

SCRIPT = "perf.script"
"""Its output beside the recording, made where the symbols were; see adapters/agent/monitors."""

_HEAD = re.compile(
    r"\s*(?P<comm>\S.*?)\s+(?P<pid>-?\d+)(?:/-?\d+)?\s+(?:\[\d+\]\s+)?(?:[\d.]+:\s+)?"
    r"(?:(?P<period>\d+)\s+)?(?P<event>[A-Za-z][\w\-/.,=:]*?):(?:\s+(?P<rest>\S.*))?\s*"
)
_FRAME = re.compile(r"\s*(?P<ip>[0-9a-f]+)\s+(?P<symbol>\S.*?)(?:\+0x[0-9a-f]+)?\s+\((?P<dso>.*)\)\s*")
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


def looks_like(text: str) -> bool:
    """Return whether this is perf script's text: a sample's head, then frames or a frame in the head."""
    lines = [x for x in text.splitlines()[:50] if x.strip() and not x.startswith("#")]
    if not lines:
        return False
    head = _HEAD.fullmatch(lines[0])
    if head is None:
        return False
    return bool(
        (head["rest"] and _FRAME.fullmatch(head["rest"])) or (len(lines) > 1 and _FRAME.fullmatch(lines[1]))
    )


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
    for sample in _samples(text):
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
        sum(stacks.values()),
        len(samples),
        event=_plain(event),
        notes=tuple(notes),
    )


def _samples(text: str) -> Iterator[_Sample]:
    current: _Sample | None = None
    for line in text.splitlines():
        if not line.strip():
            if current is not None:
                yield current
            current = None
            continue
        frame = _FRAME.fullmatch(line)
        if frame is not None and current is not None:
            _add_frame(current, frame)
            continue
        head = _HEAD.fullmatch(line)
        if head is None:
            continue
        if current is not None:
            yield current
        comm = _WORKER.sub(r"\1", head["comm"])
        current = _Sample(comm, head["event"], float(head["period"] or 1), [])
        rest = _FRAME.fullmatch(head["rest"]) if head["rest"] else None
        if rest is not None:
            _add_frame(current, rest)
    if current is not None:
        yield current


def _add_frame(sample: _Sample, frame: re.Match[str]) -> None:
    """Add a frame; what unwinding ends in ('[unknown]' beyond the first frame) says nothing."""
    if frame["symbol"] == "[unknown]" and sample.frames:
        return
    sample.frames.append(Symbol(source_name(frame["symbol"]), origin_of(frame["dso"])))


def _plain(event: str) -> str:
    """Return an event without precision and privilege: 'cycles:ppp' and 'cycles:u' are cycles."""
    return re.sub(r":[ukhGHpPSD]*$", "", event)
