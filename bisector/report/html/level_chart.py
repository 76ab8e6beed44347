"""The level of each measured commit with its interval, in the order of history, the culprit marked."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from bisector.report import phrases
from bisector.report.html import commit_axis, svg
from bisector.report.html.escaping import element
from bisector.report.html.measured_boots import MeanLevel
from bisector.report.report_model import Material

_HEIGHT = 330
_MAX_UNTESTABLE = 20
"""Commits without a level that get a place: more would push the others together."""


def render(material: Material, levels: Sequence[MeanLevel]) -> Markup:
    """Return the drawing. levels: as `measured_boots.levels` returns them, at least one."""
    metric, sides = material.goal.metric, commit_axis.sides(material)
    crossed = _crossed(material, levels)
    axis = commit_axis.axis(material, [*(one.commit for one in levels), *crossed])
    ends = [x for one in levels for x in ((one.interval.low, one.interval.high) if one.interval else ())]
    good = next((one.mean for one in levels if one.commit == material.graph.good), None)
    limit = None if good is None else _threshold(material, good)
    means = [one.mean for one in levels]
    near = [limit] if limit is not None and _near(limit, means) else []
    bottom = _HEIGHT - commit_axis.AXIS_HEIGHT
    scale = svg.fitting([*means, *ends, *near], bottom, svg.TOP + 8)
    parts: list[object] = [
        *axis.bands(svg.TOP + 4, bottom),
        *svg.left_axis(scale, f"{metric.name} in {metric.unit}"),
    ]
    parts.append(svg.line(svg.LEFT, bottom, svg.DRAWING_WIDTH - svg.RIGHT, bottom, "axis"))
    if near and limit is not None:
        y = scale(limit)
        parts += [
            svg.line(svg.LEFT, y, svg.DRAWING_WIDTH - svg.RIGHT, y, "threshold"),
            svg.label(svg.LEFT + 6, y - 5, f"threshold: {phrases.threshold(material.goal)}", "note"),
        ]
    points = " ".join(f"{axis(one.commit):.1f},{scale(one.mean):.1f}" for one in levels)
    parts.append(element("polyline", points=points, class_="trace"))
    parts += [_mark(material, one, axis(one.commit), scale, sides.get(one.commit, "")) for one in levels]
    parts += [_cross(material, commit, axis(commit), bottom - 8) for commit in crossed]
    first, last = (material.label(levels[at].commit) for at in (0, -1))
    unit = material.goal.unit
    says = f"{len(levels)} measured {unit}s, from {first} to {last}"
    return svg.drawing("levels", f"Level of each {unit}", says, _HEIGHT, *parts, *axis.names(bottom + 16))


def legend(material: Material, levels: Sequence[MeanLevel]) -> str:
    """Return what the marks mean that are there: a sentence for each kind of mark."""
    sides = commit_axis.sides(material)
    there = {sides.get(one.commit, "") for one in levels}
    words = {
        "old": "circles: older side",
        "new": "squares: with the change",
        "": "diamonds: on which side is open",
    }
    sentence = "; ".join(text for side, text in words.items() if side in there)
    crosses = " Crosses could not be tested." if _crossed(material, levels) else ""
    return f"{sentence[:1].upper()}{sentence[1:]}.{crosses}"


def _crossed(material: Material, levels: Sequence[MeanLevel]) -> list[int]:
    """Return the commits that get a cross: untestable, without a level, and not too many."""
    untestable, known = sorted(material.state.untestable), {one.commit for one in levels}
    return [one for one in untestable if one not in known] if len(untestable) <= _MAX_UNTESTABLE else []


def _threshold(material: Material, good: float) -> float:
    """Return the level that differs from the older end by just the threshold, in the direction looked for."""
    size = material.goal.metric.threshold
    return good + material.goal.sought_sign * size.value * (abs(good) if size.relative else 1.0)


def _near(limit: float, means: Sequence[float]) -> bool:
    """Return whether the threshold may be drawn without squeezing the levels into half of the room."""
    low, high = min(means), max(means)
    return max(limit, high) - min(limit, low) <= 2 * (high - low)


def _mark(material: Material, one: MeanLevel, x: float, scale: svg.Axis, side: str) -> Markup:
    number = phrases.number(one.mean)
    title = f"{material.label(one.commit)}: {number} {material.goal.metric.unit}"
    parts = []
    if one.interval is not None:
        low, high = one.interval.low, one.interval.high
        title += f", {phrases.number(low, one.mean)} .. {phrases.number(high, one.mean)}"
        y1, y2 = scale(low), scale(high)
        parts.append(
            element(
                "path",
                d=f"M{x:.1f} {y1:.1f}V{y2:.1f}M{x - 5:.1f} {y1:.1f}h10M{x - 5:.1f} {y2:.1f}h10",
                class_="interval",
            )
        )
    title += f"; boots: {one.boots}, runs: {one.samples}"
    y = scale(one.mean)
    if side == "new":
        shape = element("rect", x=x - 4.5, y=y - 4.5, width=9, height=9)
    elif side == "old":
        shape = element("circle", cx=x, cy=y, r=5)
    else:
        shape = element("path", d=f"M{x:.1f} {y - 6.5:.1f}l6.5 6.5l-6.5 6.5l-6.5 -6.5z")
    return element("g", element("title", title), *parts, shape, class_=f"level {side}".strip())


def _cross(material: Material, commit: int, x: float, y: float) -> Markup:
    why = material.state.untestable[commit].splitlines()[0]
    cross = element("path", d=f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8", class_="cross")
    return element("g", element("title", f"{material.label(commit)}: {why}"), cross)
