"""The functions that account for a culprit's effect, where emulated guests have counted what each executes.

Both kernels ran the same workload in the same way; nothing is sampled, so the differences add up.
"""

from __future__ import annotations

from bisector.linux.exact_profile import compare_exactly
from bisector.linux.profile import Profile, Symbol
from bisector.model.decisions import Finding
from bisector.model.facts import MonitorResult
from bisector.report import phrases
from bisector.report.profiles import exact_table
from bisector.report.report_model import Material

MONITOR = "counters"
_SHOWN = 12
"""Functions in a report; `perfbisect profile` shows all."""


def lines(material: Material, finding: Finding) -> list[str]:
    """Return the report's section on one culprit; empty unless it and a parent of it were counted."""
    if len(finding.commits) != 1:
        return []
    culprit = counted(material, finding.commits[0])
    for parent in finding.parents:
        before = counted(material, parent)
        if culprit is None or before is None:
            continue
        found = compare_exactly(before, culprit, material.touched)
        names = " ".join(f"{material.id}:{profile.name}" for profile in (before, culprit))
        out = phrases.heading(f"Functions that account for it: {before.name} and {culprit.name}")
        out += exact_table.table(found, _SHOWN)
        out += ["", *phrases.wrap(exact_table.sentence(found, _SHOWN))]
        return [*out, "", "  All of them:", f"  perfbisect profile {names}"]
    return []


def counted(material: Material, index: int) -> Profile | None:
    """Return what was counted of a commit, the mean of its boots; None without any."""
    results = [
        result
        for visit in material.state.boots
        if visit.commit == index
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
