"""A differential flame graph as one SVG file: widths of the second profile, colours of the change.

Red frames have a larger share than in the first profile, blue ones a smaller one; the larger the change, the
deeper the colour (Gregg 2014). Where both profiles are counts of a run, these are compared: a share falls
wherever another function grows, a count does not. Every frame has its numbers as a tooltip.
"""

from __future__ import annotations

from collections.abc import Collection
from xml.sax.saxutils import escape

from bisector.linux.call_graph import Frame, flame
from bisector.linux.profile import Profile
from bisector.model.printable import printable
from bisector.report.profiles.profile_table import shown

_WIDTH, _ROW, _MARGIN, _HEAD = 1200.0, 16, 10, 70
"""Pixels: of all frames together, of a row of frames, of the margin, of the head's height."""
_LETTER_WIDTH = 6.6
"""Pixels of a letter of an 11-pixel monospaced font."""
MIN_SHARE = 0.001
"""Share of the total: a frame of about one pixel; narrower ones cannot be seen."""
MIN_SHARE_EMBEDDED = 0.004
"""The same in a page: a frame of five pixels. A frame takes 300 bytes, and a page is to stay below 300 kB."""
_GROUND = '<rect width="100%" height="100%" fill="#ffffff"/>'
_SAME = 232
"""Of 255, each part of the grey of a frame that has not changed: it stands out from white and from black."""
_FULL_COLOUR_CHANGE = 0.02
"""Change from which on a colour is full, as a share of all: two points are much for a kernel function."""


def render(a: Profile, b: Profile, touched: Collection[str] = (), *, embedded: bool = False) -> str:
    """Return the SVG text. touched: functions that get a frame, because the commit changes them.

    embedded: as a part of a page, which gives it its size; narrow frames are left out there.
    """
    frames, gone = flame(a, b, MIN_SHARE_EMBEDDED if embedded else MIN_SHARE)
    counted = (a.total, b.total) if a.exact and b.exact else None
    red = f"Red: {'executes ' if counted else ''}more than in {escape(a.name)}, blue: less."
    deepest = max((f.depth for f in frames), default=0)
    height = _HEAD + (deepest + 1) * _ROW + _MARGIN
    size = 'class="flame" role="img"' if embedded else f'width="{_WIDTH + 2 * _MARGIN:.0f}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {_WIDTH + 2 * _MARGIN:.0f} {height}" font-family="monospace" font-size="11">',
        f"<title>{escape(a.name)} -&gt; {escape(b.name)}</title>",
        _GROUND,
        f'<text x="{_MARGIN}" y="20" font-size="14">{escape(a.name)} -&gt; {escape(b.name)}</text>',
        f'<text x="{_MARGIN}" y="38">Widths: shares of {escape(b.name)}. {red} '
        "Thick border: changed by the commit.</text>",
        f'<text x="{_MARGIN}" y="54">{100 * gone:.2f}% of {escape(a.name)} lies in frames that '
        f"{escape(b.name)} does not have.</text>",
    ]
    if embedded:
        lines.remove(_GROUND)  # the page has its own, which may be dark
    lines += [_box(frame, deepest, frame.symbol.name in touched, counted) for frame in frames]
    return printable("\n".join([*lines, "</svg>"])) + "\n"


def _change(frame: Frame, counted: tuple[float, float] | None) -> tuple[float, str]:
    """Return by how much a frame has grown, as a share of all before, and in words. counted: both totals."""
    if counted is None:
        points = 100 * (frame.width - frame.a)
        share = f"{100 * frame.width:.2f}%, was {100 * frame.a:.2f}% ({points:+.2f} points)"
        return frame.width - frame.a, share
    before, after = frame.a * counted[0], frame.width * counted[1]
    change = (after - before) / counted[0]
    return change, f"{after:,.0f}, was {before:,.0f} ({after - before:+,.0f}, {100 * change:+.2f}% of all)"


def _box(frame: Frame, deepest: int, marked: bool, counted: tuple[float, float] | None) -> str:
    x = _MARGIN + frame.left * _WIDTH
    width = frame.width * _WIDTH
    y = _HEAD + (deepest - frame.depth) * _ROW
    label = shown(frame.symbol)
    change, numbers = _change(frame, counted)
    fits = int((width - 4) / _LETTER_WIDTH)
    text = label if len(label) <= fits else label[: fits - 2] + ".." if fits >= 4 else ""
    border = (
        ' class="touched" stroke="#000000" stroke-width="2"'
        if marked
        else ' stroke="#ffffff" stroke-width="0.5"'
    )
    title = f"{label}: {numbers}"
    return (
        f'<g><title>{escape(title)}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_ROW - 1}" '
        f'fill="{_colour(change)}"{border}/>'
        + (f'<text x="{x + 3:.2f}" y="{y + _ROW - 5}">{escape(text)}</text>' if text else "")
        + "</g>"
    )


def _colour(change: float) -> str:
    """Return grey for no change, towards red for more, towards blue for less."""
    strength = min(abs(change) / _FULL_COLOUR_CHANGE, 1.0)
    fade = round(_SAME - (_SAME - 110) * strength)
    full = round(_SAME + (255 - _SAME) * strength)
    return f"#{full:02x}{fade:02x}{fade:02x}" if change > 0 else f"#{fade:02x}{fade:02x}{full:02x}"
