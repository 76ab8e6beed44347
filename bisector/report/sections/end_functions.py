"""Functions that execute more or less at the newer end, where the deciding metric does not differ.

Emulated guests count them in the samples themselves. What one function executes can decide a search, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.linux.exact_profile import ExactComparison, compare_exactly
from bisector.model.decisions import Ending
from bisector.report import phrases
from bisector.report.profiles import exact_table, explained_effect
from bisector.report.report_model import Material
from bisector.report.sections import other_metrics
from bisector.schemas.workload.counted_metrics import counted_metric, of_function

SHOWN = explained_effect.MAX_FUNCTIONS
"""Functions in a report, as many as for a culprit. Some are below the threshold, but may be most of the
change."""

_SEARCHES = 3
"""Commands in a report, for the functions that changed most. Chosen: more would hide the rest of the
section."""

_SHARE = 0.01
"""Share of all instructions that a function's change must reach where the threshold is in a unit: 1%, as the
threshold of counted metrics by default."""


def find(material: Material) -> tuple[ExactComparison, int] | None:
    """Return both ends side by side and how many functions differ; None where none does, or none was counted.

    A function differs where its change is the threshold's share of all instructions: so much would decide.
    """
    conclusion, graph = material.conclusion, material.graph
    if conclusion is None or conclusion.ending is not Ending.NOT_REPRODUCED:
        return None
    share = _least_share(material)
    for testbed in dict.fromkeys(visit.testbed for visit in material.state.boots):
        before, after = (
            explained_effect.profile_of(material.state, end, testbed) for end in (graph.good, graph.bad)
        )
        if before is not None and after is not None:
            found = compare_exactly(before, after)
            differ = sum(abs(one.change) >= share * found.a.total for one in found.changes)
            return (found, differ) if differ else None
    return None


def _least_share(material: Material) -> float:
    threshold = material.goal.metric.threshold
    return threshold.value if threshold.relative else _SHARE


def lines(material: Material) -> list[str]:
    """Return the report's section; empty where no function differs."""
    found = find(material)
    if found is None:
        return []
    both = found[0]
    out = [*phrases.heading(title(both)), *exact_table.table(both, SHOWN)]
    out += ["", *phrases.wrap(sentence(material, *found))]
    out += ["", "  All of them:", f"  {explained_effect.command(material, both)}"]
    searches = commands(material, both)
    if searches:
        out += ["", *phrases.wrap(f"{_search_words(material)}:")]
    return [*out, *(f"  {one}" for one in searches.values())]


def commands(material: Material, found: ExactComparison) -> Mapping[str, str]:
    """Return, by function, the commands that search by what one executes, the largest change first.

    A function must be of the kernel, execute something at both ends (of nothing there is no share), and have
    changed the way that is searched for, by the threshold that it would have.
    """
    more = material.goal.find == "regression"
    out: dict[str, str] = {}
    for one in found.changes[:SHOWN]:
        name = of_function(one.symbol.name) if one.symbol.origin == "kernel" else None
        if name is None or not (one.a and one.b) or (one.change > 0) != more:
            continue
        if abs(one.change) >= counted_metric(name).metric().threshold.value * one.a:
            out[one.symbol.name] = other_metrics.search_by(material, name)
    return dict(list(out.items())[:_SEARCHES])


def _search_words(material: Material) -> str:
    more = "more" if material.goal.find == "regression" else "less"
    return f"To search by what one of them executes {more}"


def sentence(material: Material, found: ExactComparison, differ: int) -> str:
    """Return what accounts for the ends' difference, and which functions of the table differ themselves.

    differ: how many do; the table begins with them.
    """
    text = exact_table.sentence(found, SHOWN, material.work)
    below = sum(one.change != 0 for one in found.changes[differ:SHOWN])
    if not below:
        return text
    least = f"{100 * _least_share(material):g}% of all {found.unit}"
    least += ", the threshold" if material.goal.metric.threshold.relative else ""
    first = "Only the first changes" if differ == 1 else f"Only the first {differ} change"
    rest = "the one behind" if below == 1 else f"the {below} behind"
    return f"{text} {first} by at least {least}; {rest} by less."


def title(found: ExactComparison) -> str:
    """Return the section's title."""
    return f"Functions that differ between the ends: {found.a.name} and {found.b.name}"


def section(material: Material) -> list[dict[str, Any]]:
    """Return the same for a page, in the form of what explains a culprit."""
    found = find(material)
    if found is None:
        return []
    both = found[0]
    return [
        {
            "title": title(both),
            "caution": "",
            "head": exact_table.head(both),
            "rows": exact_table.rows(both, SHOWN),
            "sentence": sentence(material, *found),
            "command": explained_effect.command(material, both),
            "searches": list(commands(material, both).values()),
            "search_words": _search_words(material),
        }
    ]


def render(material: Material) -> dict[str, Any] | None:
    """Return the same for machines: every function that differs."""
    found = find(material)
    if found is None:
        return None
    rows = exact_table.as_json(*found)
    return {"of_the_metric": False, **rows, "commands": dict(commands(material, found[0]))}
