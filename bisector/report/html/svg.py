"""Drawings: scales, axes and a frame with a title that screen readers announce. Sizes are in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bisector.report.html.escaping import element

DRAWING_WIDTH = 960
"""Width of a drawing: chosen. The page scales it, and lets it scroll on a narrow screen."""
LEFT, RIGHT, TOP = 76, 16, 26
"""Room for the numbers of the vertical axis, at the right, and above for notes."""
_LETTER, _GAP = 8.3, 16
"""Pixels: of a letter of a name, beside a name."""
_MAX_LABELS = 48
"""Labels below a horizontal axis: at 18 pixels each they do not touch."""
_MARGIN = 0.06
"""Share of the range of values that an axis shows beyond them."""
_FLAT = 1e-9
"""Share of the largest value below which a range counts as none: its ends differ by rounding (2^-53), and its
ticks would not be numbers of their own."""
_LARGEST, _SMALLEST = 1e300, 1e-300
"""Largest magnitude of values on a scale, and least room around them, so that all that is computed of them
stays finite."""


@dataclass(frozen=True)
class Axis:
    """Numbers from `low` to `high` are drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where a number is drawn."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round numbers within the scale, `most` or fewer."""
        raw = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= raw * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def fitting(values: Iterable[float], start: float, end: float) -> Axis:
    """Return the scale that shows all values with some room around them."""
    known = [v for v in values if abs(v) <= _LARGEST]
    low, high = min(known, default=0.0), max(known, default=1.0)
    largest = max(abs(low), abs(high))
    room = (high - low) * _MARGIN if high - low > _FLAT * largest else largest * 0.01
    room = room if room > _SMALLEST else 1.0
    return Axis(low - room, high + room, start, end)


def tick_label(value: float, ticks: Sequence[float]) -> str:
    """Return a number with as many places as the distance of the ticks needs."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else abs(value) or 1.0
    if max(map(abs, ticks), default=0.0) >= 1e7:
        return f"{value:.4g}"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def drawing(
    name: str,
    title: str,
    says: str,
    height: float,
    *parts: object,
    width: int = DRAWING_WIDTH,
    class_: str = "drawing",
) -> Markup:
    """Return the whole drawing. title, says: what a screen reader announces."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", says, id=f"{name}-says"),
        *parts,
        id=f"{name}-drawing",
        class_=class_,
        role="img",
        aria_labelledby=f"{name}-title {name}-says",
        viewBox=f"0 0 {width} {height:.0f}",
        xmlns="http://www.w3.org/2000/svg",
    )


def label(x: float, y: float, words: object, class_: str = "", anchor: str = "start") -> Markup:
    """Return a line of text; x, y: of its anchor on the base line."""
    return element(
        "text", words, x=x, y=y, class_=class_ or None, text_anchor=None if anchor == "start" else anchor
    )


def shortened(name: str, longest: int) -> str:
    """Return a name, its beginning where it is longer than so many characters."""
    return name if len(name) <= longest else f"{name[: longest - 3]}..."


def room_for(names: Iterable[str]) -> int:
    """Return the pixels that names at the left of a drawing take."""
    return _GAP + round(max(map(len, names), default=0) * _LETTER)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def dots(places: Iterable[tuple[float, float]], class_: str) -> Markup:
    """Return round marks as one path of points, which takes a quarter of the room of circles."""
    return element("path", d="".join(f"M{x:.1f} {y:.1f}h0" for x, y in places), class_=f"dots {class_}")


def left_axis(scale: Axis, title: str, format_: str = "") -> list[Markup]:
    """Return the vertical axis: numbers, lines across, and what they mean above. format_: of the numbers."""
    ticks = scale.ticks()
    out = [label(4, 14, title, "axis-title")]
    for value in ticks:
        y = scale(value)
        shown = format(value, format_) if format_ else tick_label(value, ticks)
        out += [
            line(LEFT, y, DRAWING_WIDTH - RIGHT, y, "grid"),
            label(LEFT - 6, y + 4, shown, "number", "end"),
        ]
    return out


def bottom_axis(scale: Axis, y: float, title: str, most: int = 8) -> list[Markup]:
    """Return a horizontal axis of numbers, `most` or fewer, below a drawing."""
    ticks = scale.ticks(most)
    out = [line(scale.start, y, scale.end, y, "axis")]
    for value in ticks:
        out += [line(scale(value), y, scale(value), y + 5, "axis")]
        out += [label(scale(value), y + 18, tick_label(value, ticks), "number", "middle")]
    return [*out, label(scale.end, y + 36, title, "axis-title", "end")]


def slanted(names: Sequence[tuple[float, str, str]], y: float) -> list[Markup]:
    """Return names below an axis, slanted; every second, third, ... where there are many.

    names: (x, text, class) of each; those with a class are always shown.
    """
    every = math.ceil(len(names) / _MAX_LABELS) or 1
    return [
        element(
            "text",
            words,
            transform=f"translate({x:.1f} {y:.1f}) rotate(-40)",
            text_anchor="end",
            class_=f"name {class_}".strip(),
        )
        for at, (x, words, class_) in enumerate(names)
        if class_ or at % every == 0
    ]
