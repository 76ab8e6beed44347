"""Effects with their intervals below each other on one axis, as in a meta-analysis (forest plot)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from bisector.model.decisions import Interval
from bisector.model.format import change, effect_size
from bisector.report.html import svg
from bisector.report.html.escaping import element

_WIDTH, _VALUES, _ROW, _FOOT = 520, 72, 30, 48
"""Pixels: of the drawing, which a telephone shows almost whole; for values at the right, of a row, and below
for the axis."""
_TICKS = 5
"""Numbers below the axis: beside the longest names they have 43 pixels each."""
_LONGEST = 26
"""Characters of a name that fit at the left."""


Row = tuple[str, Interval, str]
"""(name, relative change, class)."""


def shows_threshold(rows: Sequence[Row], threshold: float | None) -> bool:
    """Return whether lines of the threshold are drawn: not where the changes would be tiny beside it."""
    return threshold is not None and 0 < threshold < 2 * _largest(rows)


def render(
    name: str, title: str, rows: Sequence[Row], threshold: float | None = None, *, least: int = 1
) -> Markup:
    """Return the drawing. threshold: of a relevant change; least: places that the table below shows."""
    known = _values(rows)
    limits = [threshold, -threshold] if threshold and shows_threshold(rows, threshold) else []
    names = svg.room_for(svg.shortened(label, _LONGEST) for label, _, _ in rows)
    scale = svg.fitting([100 * x for x in (0.0, *known, *limits)], names, _WIDTH - _VALUES)
    bottom = svg.TOP + _ROW * len(rows)
    parts: list[object] = [svg.line(scale(0), svg.TOP - 8, scale(0), bottom, "zero")]
    for limit in limits:
        parts.append(svg.line(scale(100 * limit), svg.TOP - 8, scale(100 * limit), bottom, "threshold"))
    for at, (label, value, kind) in enumerate(rows):
        parts.append(_row(label, value, kind, svg.TOP + (at + 0.5) * _ROW, scale, least))
    return svg.drawing(
        name,
        title,
        "; ".join(f"{label}: {effect_size(value, least)}" for label, value, _ in rows),
        bottom + _FOOT,
        *parts,
        *svg.bottom_axis(scale, bottom, "change in percent", most=_TICKS),
        width=_WIDTH,
        class_="drawing rows",
    )


def _values(rows: Sequence[Row]) -> list[float]:
    """Return all ends of the intervals and the estimates in them."""
    return [x for _, value, _ in rows for x in (value.low, value.estimate, value.high)]


def _largest(rows: Sequence[Row]) -> float:
    return max((abs(x) for x in _values(rows) if math.isfinite(x)), default=0.0)


def _row(label: str, value: Interval, kind: str, y: float, scale: svg.Axis, least: int) -> Markup:
    low, high = (
        scale(100 * x) if math.isfinite(x) else end
        for x, end in ((value.low, scale.start), (value.high, scale.end))
    )
    x = scale(100 * value.estimate)
    return element(
        "g",
        element("title", f"{label}: {change(value, least=least)}"),
        svg.label(scale.start - 10, y + 4, svg.shortened(label, _LONGEST), "row-name", "end"),
        element(
            "path",
            d=f"M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10",
            class_="interval",
        ),
        element("path", d=f"M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z"),
        svg.label(_WIDTH - 4, y + 4, effect_size(value, least), "number", "end"),
        class_=f"level {kind}".strip(),
    )
