"""Results of monitors as text: for each boot of a bisection, or after the runs of `workload run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bisector.model.commit_graph import short_name
from bisector.model.facts import MonitorResult
from bisector.model.state import Visit
from bisector.report import phrases
from bisector.report.report_model import Material

MAX_PRINTED_NUMBERS = 12
"""Numbers of a monitor that the report prints; report.json and the monitor's folder have all of them."""
MAX_NAME_WIDTH = 44
"""Columns for the names of numbers, so that lines fit a mail."""
_PROFILERS = ("counters", "perf-record", "ftrace")
"""The monitors whose files are profiles: exact counts first, then shares of time, then counts of calls."""


def monitored_boots(material: Material) -> list[Visit]:
    """Return the boots in which monitors had their runs, in order."""
    return [visit for visit in material.state.boots if visit.monitors]


def watched_boots(material: Material) -> list[Visit]:
    """Return the same with what was asked for alone."""
    asked = ((visit, tuple(r for r in visit.monitors if not r.unasked)) for visit in material.state.boots)
    return [replace(visit, monitors=results) for visit, results in asked if results]


def section(material: Material) -> list[str]:
    """Return the report's section; empty without monitors."""
    found = watched_boots(material)
    if not found:
        return []
    out = phrases.heading("What the monitors saw")
    out += phrases.wrap("In runs of their own, after the samples: none of these runs is a sample.")
    for visit in found:
        where = f"{material.label(visit.commit)}  [{visit.testbed}; boot {visit.boot}]"
        out += ["", *phrases.wrap(where, "")]
        for result in visit.monitors:
            out += lines(result, MAX_PRINTED_NUMBERS)
    pair = profiled_pair(material)
    if pair:
        names = [f"{material.id}:{short_name(material.commit(i).sha)}" for i in pair]
        out += ["", "  Side by side:", f"  perfbisect profile {' '.join(names)}"]
    return out


def profiles(material: Material) -> dict[int, str]:
    """Return the commits that were profiled, each with the folder of its first profile."""
    folders = [(visit.commit, profile_of(visit.monitors)) for visit in monitored_boots(material)]
    return {commit: folder for commit, folder in reversed(folders) if folder}


def profiled_pair(material: Material) -> tuple[int, int] | None:
    """Return the commits whose profiles belong side by side: the ends, else the first two profiled."""
    profiled = dict.fromkeys(v.commit for v in monitored_boots(material) if profile_of(v.monitors))
    ends = (material.graph.good, material.graph.bad)
    if all(i in profiled for i in ends):
        return ends
    first = sorted(list(profiled)[:2])
    return (first[0], first[1]) if len(first) == 2 else None


def profile_of(results: Sequence[MonitorResult]) -> str:
    """Return the folder with the profile that monitors recorded, empty if none did."""
    folders = {result.monitor: result.folder for result in results if result.seen}
    return next((folders[name] for name in _PROFILERS if name in folders), "")


def lines(result: MonitorResult, shown: int | None = None) -> list[str]:
    """Return what one monitor measured, at most `shown` numbers, and what it could not measure."""
    values = result.seen if shown is None else result.seen[:shown]
    out = [f"  {result.monitor}"]
    width = min(max((len(value.name) for value in values), default=0), MAX_NAME_WIDTH)
    for value in values:
        error = f"  +- {100 * value.error:.2f}%" if value.error is not None else ""
        amount = phrases.amount(value.value)
        out.append(f"    {value.name:<{width}}  {amount:>14} {value.unit}{error}".rstrip())
    if len(values) < len(result.seen):
        out.append(f"    and {len(result.seen) - len(values)} more")
    out += phrases.bullets((f"not there: {text}" for text in result.absent), "    ")
    if result.folder:
        out.append(f"    raw: {result.folder}")
    return out
