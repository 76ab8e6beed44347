"""The curve of a loss that is spread over many commits: what was measured along history."""

from __future__ import annotations

from bisector.core.model import Conclusion
from bisector.interfaces.report import words
from bisector.interfaces.report.material import Material


def lines(material: Material, conclusion: Conclusion) -> list[str]:
    """Return the level of every measured commit relative to good, the oldest first."""
    better = material.goal.metric.better
    out = words.heading("Levels along history, relative to good")
    for commit, level in conclusion.levels:
        out.append(f"  {material.label(commit):<24}  {words.effect(level, better)}")
    return out
