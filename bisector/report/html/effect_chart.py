"""Effects with their intervals below each other on one axis, as in a meta-analysis (forest plot)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from bisector.model.decisions import Interval
from bisector.model.format import percent
from bisector.report.html import svg
from bisector.report.html.escaping import element

_NAMES, _ROW, _FOOT = 250, 30, 48
"""Pixels: for names at the left, of a row, below for the axis."""
_LONGEST = 32
"""Characters of a name that fit at the left."""


def render(
    name: str, title: str, rows: Sequence[tuple[str, Interval, str]], threshold: float | None = None
) -> Markup:
    """Return the drawing. rows: (name, relative change, class) of each; threshold: of a relevant change."""
    known = [x for _, value, _ in rows for x in (value.low, value.estimate, value.high)]
    near = max((abs(x) for x in known if math.isfinite(x)), default=0.0)
    limits = [threshold, -threshold] if threshold and threshold < 2 * near else []
    scale = svg.fitting([100 * x for x in (0.0, *known, *limits)], _NAMES, svg.WIDTH - 110)
    bottom = svg.TOP + _ROW * len(rows)
    parts: list[object] = [svg.line(scale(0), svg.TOP - 8, scale(0), bottom, "zero")]
    for limit in limits:
        if limit:
            parts.append(svg.line(scale(100 * limit), svg.TOP - 8, scale(100 * limit), bottom, "threshold"))
    for at, (label, value, kind) in enumerate(rows):
        parts.append(_row(label, value, kind, svg.TOP + (at + 0.5) * _ROW, scale))
    return svg.drawing(
        name,
        title,
        "; ".join(f"{label}: {percent(value.estimate, 2)}" for label, value, _ in rows),
        bottom + _FOOT,
        *parts,
        *svg.bottom_axis(scale, bottom, "change in percent"),
    )


def _row(label: str, value: Interval, kind: str, y: float, scale: svg.Scale) -> Markup:
    low, high = (
        scale(100 * x) if math.isfinite(x) else end
        for x, end in ((value.low, scale.start), (value.high, scale.end))
    )
    shown = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 3]}..."
    x = scale(100 * value.estimate)
    return element(
        "g",
        element(
            "title",
            f"{label}: {percent(value.estimate, 2)} ({percent(value.low, 2)} .. {percent(value.high, 2)})",
        ),
        svg.label(_NAMES - 10, y + 4, shown, "row-name", "end"),
        element(
            "path",
            d=f"M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10",
            class_="interval",
        ),
        element("path", d=f"M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z"),
        svg.label(svg.WIDTH - 4, y + 4, percent(value.estimate, 2), "number", "end"),
        class_=f"level {kind}".strip(),
    )
