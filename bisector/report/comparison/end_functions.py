"""Which functions execute more or less at the newer end, where the deciding metric does not differ.

Emulated guests count them in the samples themselves. No search can be decided by one function, so what is
shown is a beginning for whoever looks further.
"""

from __future__ import annotations

from typing import Any

from bisector.linux.exact_profile import ExactComparison, compare_exactly
from bisector.model.decisions import Ending
from bisector.report import phrases
from bisector.report.profiles import exact_table, explained_effect
from bisector.report.report_model import Material

SHOWN = explained_effect.SHOWN
"""Functions in a report, as of a culprit."""

_SHARE = 0.01
"""Share of all instructions that a function's change must reach where the threshold is no share."""


def find(material: Material) -> tuple[ExactComparison, int] | None:
    """Return both ends side by side and how many functions differ; None where none does, or none was counted.

    A function differs where its change is the threshold's share of all instructions: so much would decide.
    """
    conclusion, graph = material.conclusion, material.graph
    if conclusion is None or conclusion.ending is not Ending.NOT_REPRODUCED:
        return None
    threshold = material.goal.metric.threshold
    share = threshold.value if threshold.relative else _SHARE
    for testbed in dict.fromkeys(visit.testbed for visit in material.state.boots):
        before, after = (explained_effect.counted(material, end, testbed) for end in (graph.good, graph.bad))
        if before is not None and after is not None:
            found = compare_exactly(before, after)
            differ = sum(abs(one.change) >= share * found.a.total for one in found.changes)
            return (found, differ) if differ else None
    return None


def lines(material: Material) -> list[str]:
    """Return the report's section; empty where no function differs."""
    found = find(material)
    if found is None:
        return []
    both, top = found[0], min(found[1], SHOWN)
    out = [*phrases.heading(title(both)), *exact_table.table(both, top)]
    out += ["", *phrases.wrap(exact_table.sentence(both, top))]
    return [*out, "", "  All of them:", f"  {explained_effect.command(material, both)}"]


def title(found: ExactComparison) -> str:
    """Return the section's title."""
    return f"Functions that differ between the ends: {found.a.name} and {found.b.name}"


def section(material: Material) -> list[dict[str, Any]]:
    """Return the same for a page, in the form of what explains a culprit."""
    found = find(material)
    if found is None:
        return []
    both, top = found[0], min(found[1], SHOWN)
    return [
        {
            "title": title(both),
            "caution": "",
            "head": exact_table.head(both),
            "rows": exact_table.rows(both, top),
            "sentence": exact_table.sentence(both, top),
            "command": explained_effect.command(material, both),
        }
    ]


def render(material: Material) -> dict[str, Any] | None:
    """Return the same for machines: every function that differs."""
    found = find(material)
    if found is None:
        return None
    return {"of_the_metric": False, **exact_table.as_json(*found)}
