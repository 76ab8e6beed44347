"""The machines that a mail's numbers are of: what they are, not what the lab calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bisector.model.decisions import Finding
from bisector.model.format import count, whole_number
from bisector.report import trials
from bisector.report.report_model import Material


def machine_of(material: Material, commit: int, testbed: str | None = None) -> str:
    """Return what the machine of a commit's last boot is, on one testbed or any; not which one of the lab."""
    facts = material.facts(commit, testbed)
    known = (
        _cpus(facts.get("cpus.online", "")),
        facts.get("cpu.model", ""),
        f"{_memory(facts['memory.total'])} of memory" if facts.get("memory.total") else "",
    )
    return ", ".join(filter(None, known)) or "unknown"


def machines(material: Material, finding: Finding) -> dict[str, str]:
    """Return what the testbeds are called that measured a culprit and its first parent: 'machine 1'.

    A single one has no name: ''.
    """
    beds = trials.levels_by_testbed(material, (*finding.parents[:1], finding.commits[-1]))
    return {bed: f"machine {n}" if len(beds) > 1 else "" for n, bed in enumerate(beds, start=1)}


def lines(material: Material, finding: Finding, named: Mapping[str, str]) -> list[str]:
    """Return the line of the machine; of several one each. named: as `machines` returns them."""
    if len(named) < 2:
        (bed,) = named or (None,)
        return [f"test machine: {machine_of(material, finding.commits[-1], bed)}"]
    told = (f"\t{name}: {machine_of(material, finding.commits[-1], bed)}" for bed, name in named.items())
    return ["test machines:", "", *told, ""]


def _cpus(online: str) -> str:
    """Return '4 CPUs' for '0-2,4', as a kernel lists those that it has; '' for what is no list."""
    spans = [re.fullmatch(r"(\d+)(?:-(\d+))?", one) for one in online.strip().split(",")]
    numbers = [int(s[2] or s[1]) - int(s[1]) + 1 for s in spans if s]
    return count(sum(numbers), "CPU") if len(numbers) == len(spans) else ""


def _memory(text: str) -> str:
    """Return '62.7 GiB' for '65743288 kB', as /proc/meminfo has it; any other text as it is."""
    number, _, unit = text.partition(" ")
    if unit != "kB" or (kib := whole_number(number)) is None:
        return text
    mebibytes = kib / 1024
    return f"{mebibytes:.0f} MiB" if mebibytes < 1024 else f"{mebibytes / 1024:.1f} GiB"
