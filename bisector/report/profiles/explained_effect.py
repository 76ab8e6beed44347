"""The functions that account for a culprit's effect, where emulated guests have counted what each executes.

Both kernels ran the same workload in the same way on one testbed; nothing is sampled, so the differences
add up.
"""

from __future__ import annotations

from bisector.linux.exact_profile import ExactComparison, compare_exactly
from bisector.linux.profile import Profile, Symbol
from bisector.model.decisions import Finding
from bisector.model.facts import MonitorResult
from bisector.report import phrases
from bisector.report.profiles import exact_table
from bisector.report.report_model import Material
from bisector.stats.units import factor

MONITOR = "counters"
_SHOWN = 12
"""Functions in a report; `perfbisect profile` shows all."""

_INSTRUCTIONS = "instructions"
"""The unit of metrics that count them."""


def lines(material: Material, finding: Finding) -> list[str]:
    """Return the report's section on one culprit; empty unless one testbed counted it and a parent."""
    if len(finding.commits) != 1:
        return []
    commit = finding.commits[0]
    for parent in finding.parents:
        for testbed in dict.fromkeys(visit.testbed for visit in material.state.boots):
            before, culprit = counted(material, parent, testbed), counted(material, commit, testbed)
            if before is not None and culprit is not None:
                found = compare_exactly(before, culprit, material.touched.get(commit, ()))
                return _section(material, finding, found)
    return []


def _section(material: Material, finding: Finding, found: ExactComparison) -> list[str]:
    metric, both = material.goal.metric, f"{found.a.name} and {found.b.name}"
    if _is_of_instructions(material):
        out = phrases.heading(f"Functions that account for it: {both}")
    else:
        out = phrases.heading(f"Instructions of functions: {both}")
        effect = phrases.effect(finding.effect, metric.better)
        said = f"These are instructions, which need not account for {metric.name}: it is {effect}."
        out += [*phrases.wrap(said), ""]
    out += exact_table.table(found, _SHOWN)
    out += ["", *phrases.wrap(exact_table.sentence(found, _SHOWN))]
    names = " ".join(f"{material.id}:{profile.name}" for profile in (found.a, found.b))
    return [*out, "", "  All of them:", f"  perfbisect profile {names}"]


def _is_of_instructions(material: Material) -> bool:
    """Return whether the deciding metric counts instructions, or is the time of a clock that does."""
    unit = material.goal.metric.unit
    return material.goal.clock == "instructions" and (unit == _INSTRUCTIONS or factor(unit, "s") is not None)


def counted(material: Material, index: int, testbed: str) -> Profile | None:
    """Return what was counted of a commit on a testbed, the mean of its boots; None without any."""
    results = [
        result
        for visit in material.state.boots
        if visit.commit == index and visit.testbed == testbed
        for result in visit.monitors
        if result.monitor == MONITOR and result.seen
    ]
    if not results:
        return None
    own: dict[Symbol, float] = {}
    for result in results:
        for symbol, value in _values(result):
            own[symbol] = own.get(symbol, 0.0) + value / len(results)
    return Profile(material.commit(index).sha[:12], own, total=sum(own.values()), exact=True)


def _values(result: MonitorResult) -> list[tuple[Symbol, float]]:
    """Return functions with their instructions; names in brackets, [user programs], are none."""
    return [
        (Symbol(value.name, "" if value.name.startswith("[") else "kernel"), value.value)
        for value in result.seen
    ]
