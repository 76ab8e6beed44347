"""Where the metric moved the other way: the command that finds the commit behind it."""

from __future__ import annotations

import shlex

from bisector.model.decisions import Ending
from bisector.report import phrases
from bisector.report.report_model import Material
from bisector.schemas.request import command_line


def command(material: Material) -> str:
    """Return the `start` that searches the other way; '' where the ends are not sure to differ that way.

    The change must have the size that was searched for. Where the threshold is in the metric's unit, that is
    left to the search.
    """
    conclusion, metric = material.conclusion, material.goal.metric
    if conclusion is None or conclusion.ending is not Ending.NOT_REPRODUCED or conclusion.total is None:
        return ""
    if material.attempt is not None:  # a try is no search
        return ""
    total, size = conclusion.total, metric.threshold
    if total.low <= 0 <= total.high or (size.relative and abs(total.estimate) < size.value):
        return ""
    if total.estimate * material.goal.sought_sign > 0:
        return ""
    asked = material.request
    find = "fix" if material.goal.find == "regression" else "regression"
    ends = {"good": asked.get("bad"), "bad": asked.get("good")}  # the older end stays the older one
    return shlex.join(command_line({**asked, "find": find, **ends}))


def words(material: Material) -> str:
    """Return what the command is for."""
    what = "better" if material.goal.find == "regression" else "worse"
    return f"To find the {material.goal.unit} that made it {what}:"


def lines(material: Material) -> list[str]:
    """Return this for the text; empty without a command."""
    found = command(material)
    return ["", *phrases.wrap(words(material)), f"  {found}"] if found else []
