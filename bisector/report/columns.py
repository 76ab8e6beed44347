"""Aligned columns: text to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def align(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> list[str]:
    """Return lines of columns; with `right` all but the first are aligned to the right."""
    everything = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[i]) for row in everything) for i in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if right and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in everything
    ]
