"""Levels along history, for a change that is spread over many commits."""

from __future__ import annotations

from bisector.model.decisions import Conclusion
from bisector.report import phrases
from bisector.report.report_model import Material

NOTE = "Each interval is of its level alone; that of a difference is wider."
"""Without it the level of the newer end contradicts the total change, whose interval has both ends' noise."""


def lines(material: Material, conclusion: Conclusion) -> list[str]:
    """Return the level of every measured commit relative to good, the oldest first."""
    metric = material.goal.metric
    out = phrases.heading(f"Levels along history, relative to {material.goal.terms.old}")
    for commit, level in conclusion.levels:
        out.append(f"  {material.label(commit):<24}  {phrases.effect(level, metric)}")
    return [*out, *phrases.wrap(NOTE)]
