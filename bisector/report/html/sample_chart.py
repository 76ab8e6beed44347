"""Every sample, by commit and boot: a column for each boot, its runs from left to right within it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from markupsafe import Markup

from bisector.model.commit_graph import short_name
from bisector.report import phrases
from bisector.report.html import commit_axis, svg
from bisector.report.html.escaping import element
from bisector.report.html.measured_boots import MeasuredBoot
from bisector.report.report_model import Material

_HEIGHT = 380
_INSIDE = 0.7
"""Share of a boot's column that its runs take, so that boots stay apart."""
_DIGITS = 8
"""Significant digits of the values that the script draws: more cannot be seen on a screen."""
KINDS = ("old", "new", "open", "warmup", "flagged", "left-out")
"""What a dot can be: a sample of the older or of the newer side, or of one that nobody knows yet; or a value
that does not count."""


def ordered(boots: Sequence[MeasuredBoot]) -> list[MeasuredBoot]:
    """Return the boots by commit in the order of history, within a commit in time."""
    return sorted(boots, key=lambda boot: (boot.commit, boot.number))


def places(material: Material, boots: Sequence[MeasuredBoot]) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return for each kind of dot the (x, value) of its values; the column of boot n is n .. n + 1."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    sides = commit_axis.sides(material)
    for column, boot in enumerate(boots):
        counted = sides.get(boot.commit, "open") if boot.counts else "left-out"
        for kind, values in ((counted, boot.samples), ("warmup", boot.warmups), ("flagged", boot.flagged)):
            for k, value in enumerate(values):
                share = (k + 0.5) / len(values) - 0.5
                found[kind].append((column + 0.5 + _INSIDE * share, value))
    return [(kind, points) for kind, points in found.items() if points]


def render(material: Material, boots: Sequence[MeasuredBoot]) -> Markup:
    """Return the drawing. boots: in the order of `ordered`, at least one."""
    metric, found = material.goal.metric, places(material, boots)
    bottom = _HEIGHT - commit_axis.AXIS_HEIGHT
    scale = svg.fitting((value for _, points in found for _, value in points), bottom, svg.TOP + 8)
    across = svg.Axis(0, len(boots), svg.LEFT, svg.DRAWING_WIDTH - svg.RIGHT)
    parts: list[object] = [*svg.left_axis(scale, f"{metric.name} in {metric.unit}")]
    names, marks = [], commit_axis.marks(material)
    for at, (commit, first, last) in enumerate(groups(boots)):
        x, width = across(first), across(last) - across(first)
        kind = marks[commit].band if commit in marks else "stripe" if at % 2 else "plain"
        parts.insert(0, element("rect", x=x, y=svg.TOP, width=width, height=bottom - svg.TOP, class_=kind))
        names.append((x + width / 2, *commit_axis.name(material, commit, marks.get(commit))))
    for column, boot in enumerate(boots):
        if boot.samples:
            y = scale(fmean(boot.samples))
            parts.append(svg.line(across(column + 0.1), y, across(column + 0.9), y, "mean"))
    for kind, points in found:
        parts.append(svg.dots(((across(x), scale(value)) for x, value in points), kind))
    for column, boot in enumerate(boots):
        room = (across(column), svg.TOP, across(1) - across(0), bottom - svg.TOP)
        parts.append(_column(material, boot, room))
    parts.append(svg.line(svg.LEFT, bottom, svg.DRAWING_WIDTH - svg.RIGHT, bottom, "axis"))
    runs = sum(len(boot.samples) for boot in boots)
    return svg.drawing(
        "samples",
        f"Samples by {material.goal.unit} and boot",
        f"{runs} samples in {len(boots)} boots",
        _HEIGHT,
        *parts,
        *svg.slanted(names, bottom + 16),
    )


def groups(boots: Sequence[MeasuredBoot]) -> list[tuple[int, int, int]]:
    """Return (commit, first column, column after the last) of each commit."""
    out: list[tuple[int, int, int]] = []
    for column, boot in enumerate(boots):
        if out and out[-1][0] == boot.commit:
            out[-1] = (boot.commit, out[-1][1], column + 1)
        else:
            out.append((boot.commit, column, column + 1))
    return out


def _column(material: Material, boot: MeasuredBoot, room: tuple[float, float, float, float]) -> Markup:
    """Return what a pointer over a boot's column says. room: x, y, width and height of the column."""
    booted, unit = boot.trial.booted, material.goal.metric.unit
    title = (
        f"trial {boot.number}: {material.label(boot.commit)}, {booted.purpose} on {booted.testbed}, "
        f"boot {booted.boot}"
    )
    if boot.samples:
        title += f"; mean {phrases.number(fmean(boot.samples))} {unit} of {len(boot.samples)}"
    x, y, width, height = room
    area = element("rect", x=x, y=y, width=width, height=height, class_="row")
    return element("g", element("title", title), area)


def data(material: Material, boots: Sequence[MeasuredBoot]) -> dict[str, Any]:
    """Return the same as numbers, for the script that zooms."""
    shas = material.graph.shas
    return {
        "unit": material.goal.metric.unit,
        "metric": material.goal.metric.name,
        "kinds": [
            {
                "kind": kind,
                "x": [round(x, 3) for x, _ in points],
                "y": [float(f"{y:.{_DIGITS}g}") for _, y in points],
            }
            for kind, points in places(material, boots)
        ],
        "commits": [[short_name(shas[commit], 10), first, last] for commit, first, last in groups(boots)],
        "boots": [boot.trial.booted.boot for boot in boots],
    }
