"""Two sets of samples as histograms back to back, on one axis: the older one above, the newer one below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from bisector.model.format import count
from bisector.report import phrases
from bisector.report.html import svg
from bisector.report.html.escaping import element
from bisector.report.trials import mean_of_boots

_HALF, _FOOT = 110, 48
"""Pixels of each half, and below for the axis."""
_BINS = 60
"""Bars of a histogram: chosen, each is about 14 pixels wide."""


Boots = Sequence[Sequence[float]]
"""Of each boot its samples, at least one."""


def render(names: tuple[str, str], boots: tuple[Boots, Boots], what: str) -> Markup:
    """Return the drawing. names: of the two sets; boots: of each at least one; what: of the axis."""
    samples = tuple([v for boot in of for v in boot] for of in boots)
    means = map(mean_of_boots, boots)
    scale = svg.fitting([*samples[0], *samples[1]], svg.LEFT, svg.DRAWING_WIDTH - svg.RIGHT)
    width = (scale.high - scale.low) / _BINS
    bins = [Counter(min(int((v - scale.low) / width), _BINS - 1) for v in some) for some in samples]
    tallest = max(n / len(some) for found, some in zip(bins, samples, strict=True) for n in found.values())
    middle = svg.TOP + _HALF
    parts: list[object] = []
    for which, (name, mean, some, found) in enumerate(zip(names, means, samples, bins, strict=True)):
        up, kind = (-1, "old") if which == 0 else (1, "new")
        unit = up * (_HALF - 24) / tallest / len(some)
        path = "".join(
            f"M{scale(scale.low + at * width) + 0.5:.1f} {middle}v{n * unit:.1f}"
            f"h{(scale.end - scale.start) / _BINS - 1:.1f}V{middle}z"
            for at, n in sorted(found.items())
        )
        x, far = scale(mean), middle + up * (_HALF - 16)
        anchor = "start" if x < svg.DRAWING_WIDTH / 2 else "end"
        shift = 6 if anchor == "start" else -6
        title = f"{name}: mean {phrases.number(mean)}, {count(len(some), 'run')}"
        parts += [
            element("g", element("title", title), element("path", d=path, class_=f"bars {kind}")),
            svg.line(x, middle, x, far, f"mean {kind}"),
            svg.label(x + shift, far + (0 if which == 0 else 8), title, kind, anchor),
        ]
    parts += [svg.line(svg.LEFT, middle, svg.DRAWING_WIDTH - svg.RIGHT, middle, "axis")]
    bottom = svg.TOP + 2 * _HALF
    return svg.drawing(
        "before-after",
        f"Distribution of {what}",
        f"{names[0]} above, {names[1]} below",
        bottom + _FOOT,
        *parts,
        *svg.bottom_axis(scale, bottom, what),
    )
