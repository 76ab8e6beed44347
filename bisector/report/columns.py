"""Aligned columns: text to the left, numbers to the right; fitted to a width without breaking a word.

Cells are made printable before they are measured: an escape afterwards is longer than what it stands for.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from bisector.model.printable import printable_line

_GAP = "  "
_READABLE = 40
"""Characters that a column of sentences keeps before a less important one is left out: half of 80."""


def align(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> list[str]:
    """Return lines of columns; with `right` all but the first are aligned to the right."""
    everything = _printable([header, *rows])
    widths = [max(len(row[i]) for row in everything) for i in range(len(header))]
    return [
        _GAP.join(
            cell.rjust(width) if right and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in everything
    ]


def fit(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None,
    *,
    wrapped: Iterable[str] = (),
    dropped: Iterable[str] = (),
) -> list[str]:
    """Return lines of columns that are at most `width` characters long, where words are not longer than that.

    width: characters of a line, None for any number. wrapped: titles of columns whose cells may take several
    lines. dropped: titles of the columns that are left out if that does not help, the least important first.
    """
    kept, expendable = list(range(len(header))), [header.index(title) for title in dropped]
    flexible = {header.index(title) for title in wrapped}
    everything = _printable([header, *rows])
    natural = [max(len(row[i]) for row in everything) for i in range(len(header))]
    longest = [
        max(len(word) for row in everything for word in [*row[i].split(), ""]) for i in range(len(header))
    ]
    while width is not None:
        room = width - len(_GAP) * (len(kept) - 1) - sum(natural[i] for i in kept if i not in flexible)
        columns = [i for i in kept if i in flexible]
        readable = [max(longest[i], min(natural[i], _READABLE)) for i in columns]
        if room >= sum(readable) or not expendable:
            least = readable if room >= sum(readable) else [longest[i] for i in columns]
            for i, size in zip(columns, _shares([natural[i] for i in columns], least, room), strict=True):
                natural[i] = size
            break
        kept.remove(expendable.pop(0))
    lines: list[str] = []
    for row in everything:
        cells = [wrap(row[i], natural[i]) for i in kept]
        height = max(len(cell) for cell in cells)
        for at in range(height):
            parts = (
                (cell[at] if at < len(cell) else "").ljust(natural[i])
                for i, cell in zip(kept, cells, strict=True)
            )
            lines.append(_GAP.join(parts).rstrip())
    return lines


def _printable(rows: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the rows with escapes for what is no letter of one column; no cell begins a line of ours."""
    return [tuple(printable_line(cell).replace("\t", "\\t") for cell in row) for row in rows]


def _shares(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Shrink columns, always the widest that may, until they fit into the room or none may shrink."""
    sizes = list(natural)
    while sum(sizes) > room:
        shrinkable = [i for i, size in enumerate(sizes) if size > least[i]]
        if not shrinkable:
            break
        sizes[max(shrinkable, key=lambda i: sizes[i])] -= 1
    return sizes


def wrap(text: str, width: int | None) -> list[str]:
    """Return the text in lines of at most `width` characters, longer where a word is; None: in one line."""
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]
