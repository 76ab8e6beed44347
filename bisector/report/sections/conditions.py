"""The conditions of a result: what was asked for, and where it was measured."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from bisector.linux import settings_report
from bisector.model.format import count
from bisector.model.machines.firmware import FIRMWARE
from bisector.report import phrases
from bisector.report.report_model import Material

_CLOCKS = {
    "instructions": (
        "instructions: the guest's clock advances with the instructions it executes (emulation, icount). "
        "Repeatable to a fraction of a percent on a busy machine, and blind to cache misses, memory speed "
        "and I/O: it sees longer code paths, not slower hardware use."
    ),
    "wall": "wall: real time. It sees everything, other load on the machine included.",
}


def question(material: Material) -> str:
    """Return the range and the metric in one sentence."""
    if material.attempt is not None:
        return f"three kernels side by side, judged by {material.goal.metric.name}"
    g = material.graph
    return (
        f"{count(sum(g.candidate), 'candidate')} between {material.label(g.good)} and "
        f"{material.label(g.bad)}, judged by {material.goal.metric.name}"
    )


def request(material: Material) -> list[str]:
    """Return the section on what the user asked for."""
    return phrases.heading("What was asked") + phrases.pairs(request_rows(material))


def request_rows(material: Material) -> dict[str, str]:
    """Return what the user asked for, name -> text."""
    goal = material.goal
    rows = {
        **({"looked for": "what made it better (--find fix)"} if goal.find == "fix" else {}),
        "started": f"{phrases.date(material.created)}, id {material.id}",
        "range": question(material),
        "metric": f"{goal.metric.name} in {goal.metric.unit}, {goal.metric.better} is better",
        "threshold": phrases.threshold(goal),
        "alpha": f"{goal.alpha:g}",
        "clock": _CLOCKS[goal.clock],
    }
    if material.modelled:
        rows["modelled"] = f"misses and cycles are a model's, never measured: {material.modelled}"
    for name, value in material.request.items():
        if name not in (*rows, "find") and value not in (None, "", [], (), False, {}):
            rows[name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    if "recipe" in rows:
        rows["recipe"] = phrases.recipe(rows["recipe"], material.recipe_chosen)
    return rows


_MACHINE = ("cpu.model", "memory.total", "clocksource", "cpus.online", "cmdline")
"""Facts of a boot that say on which machine it was; its firmware comes after them."""


def where(material: Material) -> list[str]:
    """Return the section on the machines, images and tools that were used."""
    return phrases.heading("Where it was measured") + phrases.pairs(where_rows(material))


def where_rows(material: Material) -> dict[str, str]:
    """Return the machines, images and tools that were used, name -> text."""
    rows = {**material.host, **_machines(material), **_settings(material)}
    boots = [visit.booted for visit in material.state.boots]
    for name, checksums in (("workload", {b.workload for b in boots}), ("image", {b.image for b in boots})):
        sums = sorted(checksums - {""})
        if sums:
            rows[f"{name} checksum"] = ", ".join(sums)
            if len(sums) > 1:
                rows[f"{name} checksum"] += " - it changed: boots on both sides of the change do not compare"
    toolchains = sorted({kernel.toolchain for kernel in material.kernels.values()} - {""})
    if toolchains:
        rows["toolchain"] = ", ".join(toolchains)
    if changed := _compiler_change(material):
        rows["compilers differ"] = changed
    rows.update(material.files)
    return rows


def _machines(material: Material) -> dict[str, str]:
    """Return what each testbed is, by its last boot of an end; named where there are several."""
    ends = (material.graph.good, material.graph.bad)
    first: dict[str, Mapping[str, str]] = {}
    for testbed in sorted({visit.testbed for visit in material.state.boots if visit.booted.facts}):
        others = (visit.commit for visit in material.state.boots if visit.testbed == testbed)
        known = (material.facts(commit, testbed) for commit in (*ends, *others))
        first[testbed] = next(filter(None, known), {})
    what = "guest" if material.goal.clock == "instructions" else "testbed"
    return {
        f"{what} {name}" if len(first) == 1 else f"{name} on {testbed}": facts[name]
        for testbed, facts in first.items()
        for name in (*_MACHINE, *(name for name in FIRMWARE if name not in _MACHINE))
        if facts.get(name)
    }


def _compiler_change(material: Material) -> str:
    """Return that a culprit and its parent were compiled by different toolchains; '' if none were."""
    for finding in material.conclusion.findings if material.conclusion is not None else ():
        for commit, parent in itertools.product(finding.commits, finding.parents):
            now, then = material.kernel(commit).toolchain, material.kernel(parent).toolchain
            if now and then and now != then:
                before = material.goal.terms.parent
                return f"{material.label(commit)} by {now}, its {before} by {then}: that may be the change"
    return ""


def _settings(material: Material) -> dict[str, str]:
    """Return what was set on each testbed, by its first boot; named where there are several."""
    first: dict[str, dict[str, str]] = {}
    for visit in material.state.boots:
        if visit.booted.ok and visit.booted.facts:
            first.setdefault(visit.testbed, settings_report.settings(visit.booted.facts))
    return {
        f"set {name}" if len(first) == 1 else f"set {name} on {testbed}": words
        for testbed, found in first.items()
        for name, words in found.items()
    }
