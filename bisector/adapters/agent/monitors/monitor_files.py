"""From a monitor's raw files to its values, and to a list of what it could not measure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bisector.adapters.agent.monitors import counters
from bisector.adapters.parsers.profiles import function_listings, perf_script
from bisector.adapters.parsers.results import perf_stat
from bisector.errors import RequestError
from bisector.model.facts import MonitorValue
from bisector.schemas.documents.json_reader import parse_json

STAT = "stat.json"
RECORDING = "perf.data"
_MAX_SYMBOLS = 20
"""Symbols of a recording in its summary; the others are in the recording."""

_WARNING = re.compile(r"WARNING: |BUG: |\bOops\b|stall(s|ed)? |lockup|Out of memory|oom-kill", re.IGNORECASE)

_MAX_VALUES = 10_000
"""Most values that are kept of one monitor: /proc/interrupts of a large server has some thousand lines."""

_MAX_REASONS = 100
"""Most reasons why something was not measured that are kept: chosen, a system has a few."""
_MAX_CHARACTERS = 500
"""Characters that are kept of a name or a reason."""

_ABSENT = "absent"
"""The agent's file: what the system could not measure, a line each."""

Summary = tuple[tuple[MonitorValue, ...], tuple[str, ...]]


def summarise(monitor: str, folder: Path, seconds: float) -> Summary:
    """Return (numbers, what is absent) of a monitor's files. seconds: of the run, on the testbed's clock."""
    absent: list[str] = []
    with contextlib.suppress(OSError):
        absent = [line for line in _read(folder / _ABSENT).splitlines() if line.strip()]
    try:
        seen, more = _SUMMARIES[monitor](folder, seconds)
    except FileNotFoundError as error:
        seen, more = (), () if absent else (f"it left no {Path(str(error.filename)).name}",)
    except (RequestError, ValueError, RecursionError) as error:
        seen, more = (), (f"what it left cannot be read: {error}",)
    if len(seen) > _MAX_VALUES:
        more = (*more, f"of {len(seen)} values the first {_MAX_VALUES} are kept")
    kept = tuple(replace(one, name=one.name[:_MAX_CHARACTERS]) for one in seen[:_MAX_VALUES])
    return kept, tuple(why[:_MAX_CHARACTERS] for why in (*absent, *more)[:_MAX_REASONS])


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _perf_stat(folder: Path, _: float) -> Summary:
    """Read `perf stat -j`, one JSON object a line; older perfs put a line of text in between."""
    rows = [parse_json(line, STAT) for line in _read(folder / STAT).splitlines() if line.startswith("{")]
    if not rows:
        return (), ("perf printed no counter",)
    try:
        found = perf_stat.json_lines(rows, "perf stat")
    except RequestError as error:  # not one was counted; which ones stands in the details
        return (), tuple(error.details.splitlines()) or (error.message,)
    seen = tuple(
        MonitorValue(name, series.values[0], series.unit, series.error)
        for name, series in found.series.items()
    )
    return seen, (*(f"{name}: {why}" for name, why in found.missing.items()), *found.notes)


def _perf_record(folder: Path, _: float) -> Summary:
    text = _read(folder / perf_script.SCRIPT)
    if not text.strip():
        return (), ("no sample was taken",)
    found = perf_script.read(text, perf_script.SCRIPT)
    top = sorted(found.own.items(), key=lambda item: -item[1])[:_MAX_SYMBOLS]
    shares = tuple(MonitorValue(symbol.name, 100 * weight / found.total, "%") for symbol, weight in top)
    return (MonitorValue(f"samples of {found.event}", found.samples), *shares), found.notes


def _ftrace(folder: Path, seconds: float) -> Summary:
    """Read trace_stat: calls, and where the graph tracer is there the time with all it calls."""
    texts = [_read(path) for path in sorted(folder.glob("function*"))]
    if not texts:
        raise FileNotFoundError(2, "no such file", str(folder / "function0"))
    text = "\n".join(texts)
    if not re.search(r"^[ \t]++\S++[ \t]++\d", text, re.MULTILINE):
        return (), ("none of the functions was called",)
    found = function_listings.traced(text, "trace_stat")
    seen: list[MonitorValue] = []
    longest_first = sorted(found.calls.items(), key=lambda item: (-found.spent.get(item[0], 0), -item[1]))
    for symbol, calls in longest_first:
        seen.append(MonitorValue(symbol.name, calls, "calls"))
        spent = found.spent.get(symbol)
        if spent is not None:
            seen.append(MonitorValue(f"{symbol.name}, time", spent, "us"))
            if seconds > 0:
                share = 100 * spent / (1e6 * seconds * len(texts))
                seen.append(MonitorValue(f"{symbol.name}, share", share, "%"))
    absent = () if found.spent else ("times: this kernel counts calls only (CONFIG_FUNCTION_GRAPH_TRACER)",)
    return tuple(seen), absent


def _proc(folder: Path, _: float) -> Summary:
    found: list[MonitorValue] = []
    for after in sorted(folder.glob("*.after")):
        before = after.with_suffix(".before")
        if before.is_file():
            path = after.name.removesuffix(".after").replace(":", "/")
            found += counters.changes(path, _read(before), _read(after))
    return tuple(found), () if found else ("no number in these files changed",)


def _dmesg(folder: Path, _: float) -> Summary:
    """Count what is new in the log; the ring buffer may have lost its beginning meanwhile."""
    before = _read(folder / "dmesg.before").splitlines()
    after = _read(folder / "dmesg.after").splitlines()
    last = before[-1] if before else None
    at = len(after) - after[::-1].index(last) if last in after else 0
    new = after[at:]
    warnings = [line for line in new if _WARNING.search(line)]
    return (MonitorValue("new lines", len(new)), MonitorValue("warnings among them", len(warnings))), ()


def _counters(_: Path, __: float) -> Summary:
    return (), ("only an emulated guest (clock 'instructions') counts what each function executes",)


_SUMMARIES: Mapping[str, Callable[[Path, float], Summary]] = {
    "perf-stat": _perf_stat,
    "perf-record": _perf_record,
    "ftrace": _ftrace,
    "proc": _proc,
    "dmesg": _dmesg,
    "counters": _counters,
}
