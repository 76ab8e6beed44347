"""The functions that account for a culprit's effect, where emulated guests have counted what each executes.

Both kernels ran the same workload in the same way on one testbed; nothing is sampled, so the differences
add up.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bisector.linux.exact_profile import ExactComparison, compare_exactly
from bisector.linux.profile import Origin, Profile, Symbol
from bisector.model.commit_graph import short_name
from bisector.model.decisions import Finding
from bisector.model.state import State
from bisector.report import phrases
from bisector.report.profiles import exact_calls, exact_table
from bisector.report.report_model import Material
from bisector.schemas.counted_functions import (
    CALLED_FROM,
    IN_PROGRAM,
    INSTRUCTIONS,
    MISSES,
    OTHER_USER,
    USER,
)
from bisector.schemas.workload.counted_metrics import counted_function
from bisector.stats.units import factor

MONITOR = "counters"
MAX_FUNCTIONS = 12
"""Functions in a report; `perfbisect profile` shows all."""
_LISTED = 100
"""The same in the report for machines."""


@dataclass(frozen=True, slots=True)
class _Mode:
    """What a processor executes in one mode. user: in user mode; whose: functions, in words."""

    user: bool
    whose: str


_MODES: Mapping[str, _Mode] = {
    "user-instructions": _Mode(user=True, whose="programs"),
    "kernel-instructions": _Mode(user=False, whose="the kernel"),
}
"""Metrics that count the instructions of one mode, not all of a run."""


def find(material: Material, finding: Finding) -> ExactComparison | None:
    """Return a parent beside its culprit; None unless one testbed counted both.

    Of a set that no test tells apart it is the one that was measured; what any of them changes is marked.
    """
    touched = frozenset[str]().union(*(material.touched.get(commit, ()) for commit in finding.commits))
    testbeds = dict.fromkeys(visit.testbed for visit in material.state.boots)
    units = [MISSES[name]] if (name := material.goal.metric.name) in MISSES else []
    for unit in (*units, INSTRUCTIONS):
        for parent, commit, testbed in itertools.product(finding.parents, finding.commits, testbeds):
            before = profile_of(material.state, parent, testbed, unit)
            culprit = profile_of(material.state, commit, testbed, unit)
            if before is not None and culprit is not None:
                before, culprit = _of_the_metric(material, before), _of_the_metric(material, culprit)
                return compare_exactly(before, culprit, touched)
    return None


def _of_the_metric(material: Material, profile: Profile) -> Profile:
    """Return a profile without the functions whose instructions the deciding metric does not count."""
    mode = _MODES.get(material.goal.metric.name)
    if mode is None:
        return profile
    own = {symbol: value for symbol, value in profile.own.items() if (symbol.origin == "user") == mode.user}
    return replace(profile, own=own, total=sum(own.values()))


def lines(material: Material, finding: Finding) -> list[str]:
    """Return the report's section on one culprit; empty without counts."""
    found = find(material, finding)
    if found is None:
        return []
    out = phrases.heading(title(material, found))
    warning = caution(material, finding, found)
    out += [*phrases.wrap(warning), ""] if warning else []
    out += exact_table.table(found, MAX_FUNCTIONS)
    out += ["", *phrases.wrap(exact_table.sentence(found, MAX_FUNCTIONS, material.work))]
    for sentence in exact_calls.sentences(found):
        out += phrases.wrap(sentence)
    return [*out, "", "  All of them:", f"  {command(material, found)}"]


def title(material: Material, found: ExactComparison) -> str:
    """Return the section's title."""
    both = f"{found.a.name} and {found.b.name}"
    if not _is_of_the_metric(material, found):
        return f"Instructions of functions: {both}"
    mode = _MODES.get(material.goal.metric.name)
    return f"Functions{f' of {mode.whose}' if mode is not None else ''} that account for it: {both}"


def caution(material: Material, finding: Finding, found: ExactComparison) -> str:
    """Return that what was counted is not all that decides; '' where it is."""
    if any(one.symbol.origin == "user" for one in found.changes) and found.unit != INSTRUCTIONS:
        return ""
    if found.unit == MISSES["modelled-cycles"]:
        return "These are the kernel's; those of programs are not among them."
    if found.unit != INSTRUCTIONS:
        return "These are the kernel's; what programs missed themselves is not among them."
    if _is_of_the_metric(material, found):
        return ""
    metric = material.goal.metric
    effect = phrases.effect(finding.effect, metric)
    return f"These are instructions, which need not account for {metric.name}: it is {effect}."


def command(material: Material, found: ExactComparison) -> str:
    """Return the command that shows all functions."""
    names = " ".join(f"{material.id}:{profile.name}" for profile in (found.a, found.b))
    return f"perfbisect profile {names}"


def render(material: Material, finding: Finding) -> dict[str, Any] | None:
    """Return the same for machines; None without counts."""
    found = find(material, finding)
    if found is None:
        return None
    rows = exact_table.as_json(found, _LISTED)
    return {"of_the_metric": _is_of_the_metric(material, found), **rows}


def _is_of_the_metric(material: Material, found: ExactComparison) -> bool:
    """Return whether the deciding metric is what was counted, or the time of a clock that counts it."""
    if found.unit != INSTRUCTIONS:
        return found.unit == MISSES.get(material.goal.metric.name)
    metric = material.goal.metric
    if counted_function(metric.name) is not None:  # one of the rows, not their sum
        return False
    return material.goal.clock == "instructions" and (
        metric.unit == INSTRUCTIONS or factor(metric.unit, "s") is not None
    )


def profile_of(state: State, index: int, testbed: str, unit: str = INSTRUCTIONS) -> Profile | None:
    """Return what was counted of a commit on a testbed, the mean of its boots; None without any.

    unit: instructions, or one of the modelled misses.
    """
    results = [
        result
        for visit in state.boots
        if visit.commit == index and visit.testbed == testbed
        for result in visit.monitors
        if result.monitor == MONITOR and any(value.unit == unit for value in result.seen)
    ]
    if not results:
        return None
    own: dict[Symbol, float] = {}
    callers: dict[tuple[str, str], float] = {}
    for value in (value for result in results for value in result.seen if value.unit == unit):
        name, called, caller = value.name.partition(CALLED_FROM)
        share = value.value / len(results)
        if called:
            callers[name, caller] = callers.get((name, caller), 0.0) + share
        else:
            symbol = Symbol(name, _origin(name))
            own[symbol] = own.get(symbol, 0.0) + share
    name = short_name(state.graph.shas[index])
    return Profile(name, own, total=sum(own.values()), event=unit, exact=True, callers=callers)


def _origin(name: str) -> Origin:
    """Return whose code a row of a boot's records is; '' for code of the kernel that is no function's."""
    if name in (USER, OTHER_USER) or IN_PROGRAM in name:
        return "user"
    return "" if name.startswith("[") else "kernel"
