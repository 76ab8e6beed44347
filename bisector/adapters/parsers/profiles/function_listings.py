"""Lists of functions with their shares: `perf report --stdio`, opreport, and function counts of ftrace."""

from __future__ import annotations

import re

from bisector.adapters.parsers.input_text import NUMBER, malformed, parse_weight
from bisector.adapters.parsers.profiles.perf_script import origin_of, plain_event
from bisector.linux.profile import Profile, Symbol, source_name

_ROW = re.compile(
    r"\s++(?P<first>\d++\.\d++)%\s++(?:(?P<second>\d++\.\d++)%\s++)?(?:.*?\s)?\[(?P<kind>[.kguHh])\]\s++"
    r"(?P<symbol>\S.*)"
)
_NO_CALLER = re.compile(r"(?<=\S)\s++-\s++-$")
"""What perf report writes behind symbols where chains were recorded and are not shown."""
_SAMPLES = re.compile(r"# Samples: (?P<count>[\d.]+)(?P<unit>[KMG]?) +of events? '(?P<event>[^']+)'")
_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_COMPLETE = 99.5
"""Percent: a list whose shares add up to less is the head of a longer one."""
_PLACES = 4
"""Decimals of opreport's percentages."""
_OPROFILE_HEAD = re.compile(r"(?:vma\s++)?(?:samples\s++)?\S*%\s++.*\bsymbol name", re.IGNORECASE)
_OPROFILE_COLUMNS = re.compile(r"vma|samples|%|(?:image|app|symbol) name")
_FTRACE_HEAD = re.compile(r"\s*Function\s+Hit(?:\s+Time\s+Avg\s+s\^2)?\s*")
_FTRACE_ROW = re.compile(
    r"\s*(?P<name>\S+)\s+(?P<hit>\d+)(?:\s+(?P<time>[\d.]+) us\s+(?P<average>[\d.]+) us(?:\s+[\d.]+ us)?)?\s*"
)


def looks_reported(text: str) -> bool:
    """Return whether this is what perf report prints."""
    return any(_row(line) for line in text.splitlines()[:200])


def reported(text: str, where: str) -> Profile:
    """Read `perf report --stdio`, with or without children; of several events the first. Shares in percent.

    Rows of one symbol (in several processes) are added up.
    """
    own: dict[Symbol, float] = {}
    whole: dict[Symbol, float] = {}
    samples, event, events = 0, "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        at = f"{where}:{number}"
        head = _SAMPLES.match(line)
        if head is not None:
            if "{" in head["event"] or ", " in head["event"]:
                raise malformed(
                    at,
                    f"the shares of several events stand side by side: {head['event']}",
                    "perf report --stdio --no-group",
                )
            events += 1
            if events == 1:
                samples = round(parse_weight(head["count"], at) * _UNITS[head["unit"]])
                event = plain_event(head["event"])
            continue
        row = _row(line)
        if row is None or events > 1:
            continue
        symbol = Symbol(source_name(row["symbol"]), "user" if row["kind"] in ".uH" else "kernel")
        if row["second"] is None:
            own[symbol] = own.get(symbol, 0.0) + parse_weight(row["first"], at)
        else:
            whole[symbol] = whole.get(symbol, 0.0) + parse_weight(row["first"], at)
            own[symbol] = own.get(symbol, 0.0) + parse_weight(row["second"], at)
    if not own:
        raise malformed(where, "perf report listed no symbol", "perf report --stdio --sort symbol")
    notes = (f"of {events} events the first, {event}, is shown",) if events > 1 else ()
    return Profile(where, own, whole, samples=samples, event=event, cut=_cut(own, whole), notes=notes)


def _row(line: str) -> re.Match[str] | None:
    return _ROW.fullmatch(_NO_CALLER.sub("", line.rstrip()))


def looks_oprofiled(text: str) -> bool:
    """Return whether this is opreport's list of symbols."""
    return any(_OPROFILE_HEAD.fullmatch(line.strip()) for line in text.splitlines()[:40])


def oprofiled(text: str, where: str) -> Profile:
    """Read `opreport -l`: samples, percent, the image if any, and the symbol; of several events the first."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if _OPROFILE_HEAD.fullmatch(line.strip()))
    columns = _OPROFILE_COLUMNS.findall(lines[at].lower())
    numbers = [c for c in columns if c in ("samples", "%")]  # of several events a pair each
    names = sum(c.endswith(" name") for c in columns)  # image and program, if they are there, and the symbol
    percent, events = numbers.index("%"), numbers.count("%")
    own: dict[Symbol, float] = {}
    samples = 0.0
    for number, line in enumerate(lines[at + 1 :], start=at + 2):
        words = line.split()["vma" in columns :]
        if not words:
            continue
        weights, texts = words[: len(numbers)], words[len(numbers) :]
        if not texts or not all(re.fullmatch(NUMBER, weight) for weight in weights):
            raise malformed(
                f"{where}:{number}", f"'{line.strip()[:60]}' is not a line of opreport", "opreport -l"
            )
        before = min(names, len(texts)) - 1  # a symbol of C++ may hold blanks
        symbol = Symbol(source_name(" ".join(texts[before:])), origin_of(texts[0]) if before else "")
        own[symbol] = own.get(symbol, 0.0) + parse_weight(weights[percent], f"{where}:{number}")
        samples += parse_weight(weights[0], f"{where}:{number}") if percent else 0
    if not own:
        raise malformed(where, "opreport listed no symbol", "opreport -l")
    cut = _cut(own, {})
    share = min(sum(own.values()), 100.0) / 100
    known = round(samples / share) if share else 0
    notes = (f"of {events} events the first is shown",) if events > 1 else ()
    return Profile(where, own, samples=known, cut=cut, places=_PLACES, notes=notes)


def looks_traced(text: str) -> bool:
    """Return whether this is ftrace's trace_stat/functionN."""
    return any(_FTRACE_HEAD.fullmatch(line) for line in text.splitlines()[:10])


def traced(text: str, where: str) -> Profile:
    """Read ftrace's function profile: calls, and microseconds in each function with all it calls.

    Several CPUs' files one after the other are added up.
    """
    calls: dict[Symbol, float] = {}
    spent: dict[Symbol, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or _FTRACE_HEAD.fullmatch(line) or line.split()[0].strip("-") == "":
            continue
        row = _FTRACE_ROW.fullmatch(line)
        if row is None:
            raise malformed(
                f"{where}:{number}", f"'{line.strip()[:60]}' is not a line of ftrace's function profile"
            )
        symbol = Symbol(source_name(row["name"]), "kernel")
        calls[symbol] = calls.get(symbol, 0.0) + parse_weight(row["hit"], f"{where}:{number}")
        if row["time"] is not None:
            spent[symbol] = spent.get(symbol, 0.0) + parse_weight(row["time"], f"{where}:{number}")
    if not calls:
        raise malformed(
            where, "no function was called", "echo 1 > function_profile_enabled, then run the workload"
        )
    return Profile(where, calls=calls, spent=spent)


def _cut(own: dict[Symbol, float], whole: dict[Symbol, float]) -> float:
    """Return the smallest listed share (0.01 = 1%) if the list is the head of a longer one."""
    listed = whole or own
    return min(listed.values()) / 100 if sum(own.values()) < _COMPLETE else 0.0
