"""Sizes of the kernels that are compared: text, data, bss in bytes, as `size vmlinux` shows them."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.report.columns import align
from bisector.stats.comparison_table import TestbedTable

_SECTIONS = ("text", "data", "bss")
"""Sections in this order; their sum is 'dec'."""


def lines(testbed: TestbedTable) -> list[str]:
    """Return the table, empty where fewer than two kernels have sizes."""
    known = [s for s in testbed.sets if s.sizes]
    if len(known) < 2:
        return []
    present = dict.fromkeys(name for s in known for name in s.sizes)
    names = [n for n in _SECTIONS if n in present] + [n for n in present if n not in _SECTIONS]
    columns = [{n: s.sizes.get(n) for n in names} | {"dec": _total(s.sizes)} for s in known]
    rows = [
        (found.name, *(_cell(sizes[n], None if sizes is columns[0] else columns[0][n]) for n in sizes))
        for found, sizes in zip(known, columns, strict=True)
    ]
    return ["sizes in bytes", *align(("KERNEL", *names, "dec"), rows, right=True), ""]


def _total(sizes: Mapping[str, int]) -> int | None:
    return sum(sizes[n] for n in _SECTIONS) if all(n in sizes for n in _SECTIONS) else None


def _cell(size: int | None, base: int | None) -> str:
    """Return '1200 (+200)'; without the change where there is no base."""
    if size is None:
        return "-"
    if base is None:
        return str(size)
    return f"{size} ({size - base:+d})" if size != base else f"{size} (same)"
