"""What monitors saw, as text: for each commit of a bisection, or after the runs of `workload run`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bisector.model.records import Booted, Left
from bisector.report import phrases
from bisector.report.report_model import Material

_SHOWN = 12
"""Numbers of a monitor that the report prints; all of them are in its folder and in report.json."""

Entry = Mapping[str, Any]
"""One monitor's answer as the engine records it: monitor, folder, seen, absent, seconds."""


def entries(material: Material) -> Iterator[tuple[Booted, Sequence[Entry]]]:
    """Yield each boot with what the monitors saw in it, in the order of the boots."""
    boots = {record.boot: record for _, record, _ in material.records if isinstance(record, Booted)}
    for _, record, note in material.records:
        if isinstance(record, Left) and note.get("monitors"):
            yield boots[record.boot], json.loads(note["monitors"])


def section(material: Material) -> list[str]:
    """Return the report's section; empty if nothing watched."""
    found = list(entries(material))
    if not found:
        return []
    out = phrases.heading("What the monitors saw")
    out += phrases.wrap("In runs of their own, after the samples: none of these runs is a sample.")
    for booted, seen in found:
        out += [
            "",
            *phrases.wrap(f"{material.label(booted.commit)}  [{booted.testbed}; boot {booted.boot}]", ""),
        ]
        for entry in seen:
            out += lines(entry, _SHOWN)
    profiled = dict.fromkeys(booted.commit for booted, seen in found if profile_of(seen))
    ends = [i for i in (material.graph.good, material.graph.bad) if i in profiled]
    pair = ends if len(ends) == 2 else list(profiled)[:2]
    if len(pair) == 2:
        names = [f"{material.id}:{material.commit(i).sha[:12]}" for i in pair]
        out += ["", "  Side by side:", f"  perfbisect profile {' '.join(names)}"]
    return out


_PROFILERS = ("perf-record", "ftrace")
"""The monitors whose files are profiles; shares of time say more than counts of calls."""


def profile_of(seen: Sequence[Entry]) -> str:
    """Return the folder with the profile that monitors recorded, empty if none did."""
    folders = {str(entry["monitor"]): str(entry["folder"]) for entry in seen if entry.get("seen")}
    return next((folders[name] for name in _PROFILERS if name in folders), "")


def lines(entry: Entry, shown: int | None = None) -> list[str]:
    """Return what one monitor saw, and what it could not; at most so many numbers."""
    seen: Sequence[Mapping[str, Any]] = entry.get("seen", ())
    told = seen if shown is None else seen[:shown]
    out = [f"  {entry['monitor']}"]
    width = min(max((len(str(one["name"])) for one in told), default=0), 44)
    for one in told:
        error = f"  +- {100 * one['error']:.2f}%" if one.get("error") is not None else ""
        out.append(f"    {one['name']:<{width}}  {_number(one['value']):>14} {one['unit']}{error}".rstrip())
    if len(told) < len(seen):
        out.append(f"    and {len(seen) - len(told)} more")
    out += phrases.bullets((f"not there: {text}" for text in entry.get("absent", ())), "    ")
    if entry.get("folder"):
        out.append(f"    raw: {entry['folder']}")
    return out


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e6 else phrases.number(value)
