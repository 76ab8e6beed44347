"""Output of `perf stat`, as text and as JSON (-j), with and without repetition (-r).

perf's +- is the relative standard error of the mean. What it could not count is a stated absence, never zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bisector.adapters.parsers.input_text import cut, json_number, json_object, malformed, parse_number
from bisector.stats.samples import SampleSeries, SampleSet

_HEAD = re.compile(r"Performance counter stats for .*?(?:\((?P<runs>\d++) runs\))?:?")
_UNIT = "msec|seconds|ns|Joules|Bytes|MiB|MB/s|GHz|C|%"
"""Units that perf writes before an event: of its own clocks, and of its tables of events (perf 6.1)."""
_LINE = re.compile(
    r"\s*(?P<value><not \w+>|[\d.,]+)(?:\s+\+-\s+(?P<spread>[\d.,]+))?\s+"
    rf"(?:(?P<unit>{_UNIT})\s+)?"
    r"(?P<event>(?:time elapsed|user|sys)\b|[A-Za-z][\w./:,=-]*)(?P<rest>.*)"
)
_ERROR = re.compile(r"\(\s*\+-\s*(?P<error>[\d.]+)%\s*\)")
_DECIMAL_COMMA = re.compile(
    r"(?<![\d.,])(?:0,\d|\d[\d.]*,(?:\d{1,2}|\d{4,})(?!\d)|\d+\.[\d.]*,)"  # never between thousands
)
_OF_A_PART = re.compile(r"(?:CPU\d++|[SN]\d++(?:-\S+)?)\s++(?:\d++\s++(?=[\d<]))?")
"""How a line begins that counts one CPU, core, die, socket or node alone, of so many CPUs."""
_OF_A_THREAD = re.compile(r".{15,80}?\S-\d++\s++(?=[\d<])")
"""How a line begins that counts one thread: its command in 16 columns or more, and its id."""
_PARTS = ("node", "socket", "die", "cluster", "cache", "core", "cpu", "thread", "cgroup")
"""Keys of what a row counts alone, where perf was asked to tell each CPU, core, thread or group by itself."""
_SECONDS = {"time elapsed": "elapsed", "user": "user", "sys": "sys"}


def looks_like(text: str) -> bool:
    """Return whether this is perf stat's text."""
    return "Performance counter stats for" in text


def text(content: str, where: str) -> SampleSet:
    """Read perf stat's text; every 'Performance counter stats' is one more run. Raises RequestError."""
    values: dict[str, list[float]] = {}
    errors: dict[str, float] = {}
    units: dict[str, str] = {}
    missing: dict[str, str] = {}
    repeats = 0
    for at, line in enumerate(content.splitlines(), start=1):
        head = _HEAD.fullmatch(line.strip())
        if head is not None:
            repeats = int(parse_number(head["runs"] or "0", f"{where}:{at}"))
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            part = _OF_A_PART.match(line)
            if part is not None and _LINE.fullmatch(line, part.end()):
                raise malformed(
                    f"{where}:{at}", "parts of the machine are counted one by one", "record with perf stat -j"
                )
            thread = _OF_A_THREAD.match(line)
            if thread is not None and _LINE.fullmatch(line, thread.end()):
                raise malformed(
                    f"{where}:{at}", "threads are counted one by one", "record without --per-thread"
                )
            continue
        _refuse_decimal_comma(match, f"{where}:{at}")
        name = _SECONDS.get(match["event"], match["event"])
        if match["value"].startswith("<"):
            missing[name] = match["value"].strip("<>")
            continue
        values.setdefault(name, []).append(parse_number(match["value"], f"{where}:{at}", grouped=True))
        units[name] = {"seconds": "s", "msec": "ms", None: ""}.get(match["unit"], match["unit"])
        error = _ERROR.search(match["rest"])
        if error is not None:
            errors[name] = parse_number(error["error"], f"{where}:{at}") / 100
    return _set(where, values, units, errors, missing, repeats)


def _refuse_decimal_comma(line: re.Match[str], place: str) -> None:
    """Refuse a text of which one number shows a decimal comma: the '1.234' of another may be a thousand.

    perf writes times with decimals and a time in seconds without marks between thousands.
    """
    time = line["value"] if line["unit"] in ("seconds", "msec") and "." not in line["value"] else ""
    shown = next(
        (part for part in (line["value"], line["spread"], line["rest"]) if _DECIMAL_COMMA.search(part or "")),
        time if "," in time else None,
    )
    if shown is not None:
        raise malformed(
            place,
            f"'{cut(shown.strip())}' has a decimal comma, so that '1.234' may be 1234",
            "measure with LC_ALL=C",
        )


def json_lines(rows: Sequence[Mapping[str, Any]], where: str) -> SampleSet:
    """Read what `perf stat -j` writes: one object an event. Raises RequestError."""
    values: dict[str, list[float]] = {}
    errors: dict[str, float] = {}
    units: dict[str, str] = {}
    missing: dict[str, str] = {}
    notes: list[str] = []
    for at, one in enumerate(rows, start=1):
        row = json_object(one, where)
        if "interval" in row:
            raise malformed(
                where, "this is an interval series of perf stat -I", "record without -I, or with -r N"
            )
        name = str(row.get("event", ""))
        if not name:
            continue  # a line with a derived metric alone
        name = "/".join([name, *(str(row[part]) for part in _PARTS if part in row)])
        place = f"{where}, event {at} ({cut(name)})"
        value = str(row.get("counter-value", ""))
        if value.startswith("<"):
            missing[name] = value.strip("<>")
            continue
        values.setdefault(name, []).append(parse_number(value, place, grouped=True))
        units[name] = {"msec": "ms", "ns": "ns"}.get(str(row.get("unit", "")), str(row.get("unit", "")))
        if "variance" in row:  # the relative standard error, in percent, whatever perf calls it
            errors[name] = abs(json_number(row["variance"], place)) / 100
        running = json_number(row.get("pcnt-running", 100.0), place)
        if running < 99.0:
            notes.append(f"{name} was counted {running:.0f}% of the time and scaled up (too many events)")
    found = _set(where, values, units, errors, missing, 0)
    return SampleSet(found.name, found.series, missing=found.missing, notes=tuple(notes))


def _set(
    where: str,
    values: Mapping[str, list[float]],
    units: Mapping[str, str],
    errors: Mapping[str, float],
    missing: Mapping[str, str],
    repeats: int,
) -> SampleSet:
    if not values:
        raise malformed(
            where,
            "perf stat counted nothing",
            "choose events that this machine has: perf list",
            "\n".join(f"{name}: {why}" for name, why in missing.items()),
        )
    series = {}
    for name, found in values.items():
        one = len(found) == 1
        series[name] = SampleSeries(
            (tuple(found),),
            units[name],
            "higher" if name in ("ipc", "insn per cycle") else None,
            errors.get(name) if one else None,
            repeats if one else 0,
        )
    return SampleSet(where, series, missing={k: v for k, v in missing.items() if k not in series})
