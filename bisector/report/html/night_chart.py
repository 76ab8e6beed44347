"""The nights of a series: levels of the newest commit and of the reference, alerts marked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import median, stdev
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from bisector.report import phrases
from bisector.report.html import svg
from bisector.report.html.escaping import element

_HEIGHT = 340
_FOOT = 44
_RADIUS = 3.5
_INTERVAL = 1.96
"""Standard errors on each side: 95% of a normal distribution."""
_LEAST_BOOTS = 2
"""Fewest boots of a night that add to what is known of the scatter between boots."""

_MOST_DATES = 6
"""Of ten characters each: they stand apart where the drawing is as narrow as it gets."""
_FIRST_NIGHTS = 10
"""Nights whose median level the reference is drawn at: enough that one odd night does not move it."""

Night = Mapping[str, Any]
"""A row of `series show --json` with a level."""


def render(
    nights: Sequence[Night], alerts: Mapping[str, Mapping[str, Any]], axis: str = "level"
) -> Markup | None:
    """Return the drawing; None without a night.

    alerts: by the commit from which on the level moved; axis: what the numbers are, as 'real in s'.
    """
    if not nights:
        return None
    bottom = _HEIGHT - _FOOT
    intervals = interval_of(nights)
    references = scaled_references(nights)
    known = [*(night["level"] for night in nights), *(x for x in references if x is not None)]
    scale = svg.fitting([*known, *(x for pair in intervals for x in pair or ())], bottom, svg.TOP + 8)
    across = svg.Axis(0, len(nights), svg.LEFT, svg.DRAWING_WIDTH - svg.RIGHT)
    parts: list[object] = [*_bands(nights, alerts, across, bottom), *svg.left_axis(scale, axis)]
    parts.append(svg.line(svg.LEFT, bottom, svg.DRAWING_WIDTH - svg.RIGHT, bottom, "axis"))
    places = ((across(at + 0.5), scale(y)) for at, y in enumerate(references) if y is not None)
    parts.append(svg.dots(places, "warmup"))
    moved = False
    for at, (night, interval) in enumerate(zip(nights, intervals, strict=True)):
        moved = moved or night["commit"] in alerts
        parts.append(_mark(night, interval, across(at + 0.5), scale, "new" if moved else "old"))
    for at in dated(len(nights)):
        label = phrases.date(nights[at]["scheduled"])[:10]
        anchor = "start" if at == 0 else "end" if at == len(nights) - 1 else "middle"
        parts.append(svg.label(across(at + 0.5), bottom + 20, label, "number", anchor))
    says = f"{len(nights)} nights with a level, {len(alerts)} alerts"
    return svg.drawing("nights", "Level of each night", says, _HEIGHT, *parts)


def dated(nights: int) -> list[int]:
    """Return the places of the nights whose dates are written: the ends, and some between them."""
    steps = max(min(_MOST_DATES, nights) - 1, 1)
    return sorted({round(step * (nights - 1) / steps) for step in range(steps + 1)})


def axis_of(series: Mapping[str, Any]) -> str:
    """Return what the numbers of a series are, as 'real in s'. series: as in `series show --json`."""
    return f"{series['metric']} in {series['unit']}" if series["metric"] else "level"


def scaled_references(nights: Sequence[Night]) -> list[float | None]:
    """Return the levels of the reference kernel, scaled to that of the newest commit in the first nights.

    Another kernel has another level; what is looked for is whether it moves at the same time.
    """
    both = [one for one in nights if one["reference_level"] is not None][:_FIRST_NIGHTS]
    reference = median(one["reference_level"] for one in both) if both else 0.0
    factor = median(one["level"] for one in both) / reference if reference else 1.0
    return [None if x is None else factor * x for x in (one["reference_level"] for one in nights)]


def interval_of(nights: Sequence[Night]) -> list[tuple[float, float] | None]:
    """Return a 95% interval of each night's level; None where no night has two boots.

    The standard deviation of boots is pooled over all nights: the boot is the independent unit.
    """
    means = [_boot_levels(night) for night in nights]
    squares = sum((len(of) - 1) * stdev(of) ** 2 for of in means if len(of) >= _LEAST_BOOTS)
    freedom = sum(len(of) - 1 for of in means if of)
    if freedom < 1:
        return [None] * len(nights)
    deviation = (squares / freedom) ** 0.5
    return [
        (night["level"] - half, night["level"] + half)
        for night, of in zip(nights, means, strict=True)
        for half in [_INTERVAL * deviation / max(len(of), 1) ** 0.5]
    ]


def _boot_levels(night: Night) -> list[float]:
    return [median(boot["values"]) for boot in night["boots"] if not boot["reference"] and boot["values"]]


def _bands(
    nights: Sequence[Night], alerts: Mapping[str, Mapping[str, Any]], across: svg.Axis, bottom: float
) -> list[Markup]:
    """Return a band behind the first night of each alert, which leads to it."""
    out = []
    for commit, at in _first_nights(nights, alerts).items():
        alert = alerts[commit]
        width = max(across(at + 1) - across(at), 6.0)
        middle = across(at + 0.5)
        rect = element(
            "rect", x=middle - width / 2, y=svg.TOP, width=width, height=bottom - svg.TOP, class_="band"
        )
        words = svg.label(middle, svg.TOP - 4, "alert", "culprit", "middle")
        title = element("title", f"alert {alert['id']}: {alert['state']}")
        out.append(element("a", title, rect, words, href=f"/alerts/{quote(alert['id'], safe='')}"))
    return out


def _first_nights(nights: Sequence[Night], alerts: Collection[str]) -> dict[str, int]:
    """Return the commits of alerts, each with the place of the first night that measured it.

    While a branch stands still, all nights measure one commit.
    """
    commits = [night["commit"] for night in nights]
    return {commit: commits.index(commit) for commit in dict.fromkeys(commits) if commit in alerts}


def _mark(night: Night, interval: tuple[float, float] | None, x: float, scale: svg.Axis, side: str) -> Markup:
    level = night["level"]
    when, commit = phrases.date(night["scheduled"]), night["commit"][:12]
    title = f"night {night['number']}, {when}: {commit}, level {phrases.number(level)}"
    parts = [element("title", title)]
    if interval is not None:
        low, high = (scale(value) for value in interval)
        parts.append(element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", class_="interval"))
    parts.append(element("circle", cx=x, cy=scale(level), r=_RADIUS))
    return element("g", *parts, class_=f"level {side}")


def data(
    nights: Sequence[Night], alerts: Mapping[str, Mapping[str, Any]], axis: str = "level"
) -> dict[str, Any]:
    """Return the same as numbers, for the script that zooms."""
    intervals = interval_of(nights)
    return {
        "kind": "nights",
        "axis": axis,
        "x": [night["scheduled"] for night in nights],
        "level": [night["level"] for night in nights],
        "low": [None if one is None else one[0] for one in intervals],
        "high": [None if one is None else one[1] for one in intervals],
        "reference": scaled_references(nights),
        "alerts": [
            [nights[at]["scheduled"], alerts[commit]["id"]]
            for commit, at in _first_nights(nights, alerts).items()
        ],
    }
