"""The probability of each commit after each decision of the search: history to the right, time downwards."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from bisector.model.decisions import Measure
from bisector.model.format import count
from bisector.report.html import commit_axis, svg
from bisector.report.html.escaping import element
from bisector.report.report_model import Material

_MAX_ROW, _MIN_ROW, _ALL_ROWS = 18.0, 3.0, 420.0
"""Pixels: of a decision's row, and of all of them together where there are many."""
_SHADES = 10
"""Steps of opacity: a step is one path, whatever number of cells it has."""
_LEAST_SHADE = 0.04
"""Opacity of a suspect of one percent, which can just be seen."""


def rows(material: Material) -> list[tuple[int, Measure]]:
    """Return the decisions that knew probabilities, each with its number from 1."""
    return [
        (number, decision)
        for number, (_, decision) in enumerate(material.decisions, start=1)
        if isinstance(decision, Measure) and decision.suspects
    ]


def render(material: Material, found: Sequence[tuple[int, Measure]]) -> Markup:
    """Return the drawing. found: as `rows` returns them, at least one."""
    commits = {c for _, d in found for c, _ in d.suspects} | {d.commit for _, d in found}
    axis = commit_axis.axis(material, [*commits, *commit_axis.marks(material)])
    height = min(_MAX_ROW, max(_MIN_ROW, _ALL_ROWS / len(found)))
    top = svg.TOP + 6
    bottom = top + height * len(found)
    shades: list[list[str]] = [[] for _ in range(_SHADES)]
    measured: list[Markup] = []
    rows_: list[Markup] = []
    for at, (number, decision) in enumerate(found):
        y = top + at * height
        for commit, probability in decision.suspects:
            cell = (
                f"M{axis(commit) - axis.step / 2:.1f} {y:.1f}h{axis.step:.1f}v{height:.1f}h-{axis.step:.1f}z"
            )
            shades[min(int(math.sqrt(probability) * _SHADES), _SHADES - 1)].append(cell)
        middle, radius = y + height / 2, min(height, axis.step) * 0.3
        measured.append(element("circle", cx=axis(decision.commit), cy=middle, r=radius, class_="measured"))
        area = element(
            "rect",
            x=svg.LEFT,
            y=y,
            width=svg.DRAWING_WIDTH - svg.RIGHT - svg.LEFT,
            height=height,
            class_="row",
        )
        rows_.append(element("g", element("title", says(material, number, decision)), area))
        if at % max(1, math.ceil(13 / height)) == 0:
            rows_.append(svg.label(svg.LEFT - 6, middle + 4, number, "number", "end"))
    cells = [
        element("path", d="".join(some), class_="shade", fill_opacity=max((n + 0.5) / _SHADES, _LEAST_SHADE))
        for n, some in enumerate(shades)
        if some
    ]
    frame = element(
        "rect",
        x=svg.LEFT,
        y=top,
        width=svg.DRAWING_WIDTH - svg.RIGHT - svg.LEFT,
        height=bottom - top,
        class_="frame",
    )
    head = svg.label(4, 14, "decision", "axis-title")
    says_all = f"{count(len(found), 'decision')}, {count(len(axis.commits), material.goal.unit)}"
    return svg.drawing(
        "posterior",
        f"Probability of each {material.goal.unit} as the search went on",
        says_all,
        bottom + commit_axis.AXIS_HEIGHT,
        head,
        *axis.bands(top, bottom),
        *cells,
        frame,
        *measured,
        *rows_,
        *axis.names(bottom + 16),
    )


def says(material: Material, number: int, decision: Measure) -> str:
    """Return what was known when a decision was made, and what it was."""
    first, probability = decision.suspects[0]
    return (
        f"decision {number}: most probable {material.label(first)}, {probability:.0%}; "
        f"then {count(decision.runs, 'run')} of {material.label(decision.commit)}"
    )
