"""The reference plot of a testbed: the boots of its health checks in time, all of one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from markupsafe import Markup

from bisector.model.machines.health import HealthPoint
from bisector.report import phrases
from bisector.report.html import svg
from bisector.report.html.escaping import element

_HEIGHT = 300
_FOOT = 40
_RADIUS = 4.5


def comparable(points: Sequence[HealthPoint]) -> list[HealthPoint]:
    """Return the boots of the kernel that was checked last; others do not compare."""
    return [one for one in points if one.kernel == points[-1].kernel]


def render(points: Sequence[HealthPoint]) -> Markup | None:
    """Return the drawing of comparable boots, side by side in time; None where none has measured anything.

    A mark is the median of a boot's runs, its line reaches from the smallest to the largest run.
    """
    values = [v for one in points for v in one.values]
    if not values:
        return None
    bottom = _HEIGHT - _FOOT
    scale = svg.fitting(values, bottom, svg.TOP + 8)
    across = svg.Axis(0, len(points), svg.LEFT, svg.DRAWING_WIDTH - svg.RIGHT)
    kernel = points[-1].kernel
    title = f"{kernel.get('metric', '')} of {kernel.get('workload', '')}".strip()
    parts: list[object] = [*svg.left_axis(scale, title)]
    parts.append(svg.line(svg.LEFT, bottom, svg.DRAWING_WIDTH - svg.RIGHT, bottom, "axis"))
    parts += [_mark(one, across(at + 0.5), scale, bottom) for at, one in enumerate(points)]
    for at, anchor in {0: "start", len(points) - 1: "end"}.items():
        parts.append(svg.label(across(at + 0.5), bottom + 20, phrases.date(points[at].at), "number", anchor))
    says = f"{len(points)} boots, {sum(one.outcome != 'sound' for one in points)} of them not sound"
    return svg.drawing("reference", "Boots of the health checks", says, _HEIGHT, *parts)


def _mark(one: HealthPoint, x: float, scale: svg.Axis, bottom: float) -> Markup:
    title = element("title", f"{phrases.date(one.at)}: {one.outcome}; {one.words}")
    if not one.values:
        y = bottom - 10
        return element(
            "g", title, element("path", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"), class_="cross"
        )
    y, low, high = (scale(of(one.values)) for of in (median, min, max))
    span = element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", class_="interval")
    if one.outcome == "sound":
        return element("g", title, span, element("circle", cx=x, cy=y, r=_RADIUS), class_="level old")
    size = 2 * _RADIUS
    square = element("rect", x=x - _RADIUS, y=y - _RADIUS, width=size, height=size)
    return element("g", title, span, square, class_="level new")
