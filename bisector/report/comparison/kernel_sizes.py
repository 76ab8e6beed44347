"""Sizes of the kernels that are compared: text, data, bss in bytes, as `size vmlinux` shows them."""

from __future__ import annotations

from bisector.report.comparison.columns import table
from bisector.stats.comparison_table import Group

_KNOWN = ("text", "data", "bss")


def lines(group: Group) -> list[str]:
    """Return the table, empty where fewer than two kernels have sizes."""
    known = [s for s in group.sets if s.sizes]
    if len(known) < 2:
        return []
    names = [n for n in _KNOWN if any(n in s.sizes for s in known)]
    names += [n for n in dict.fromkeys(n for s in known for n in s.sizes) if n not in names]
    base = known[0].sizes
    rows = []
    for found in known:
        cells = []
        for name in names:
            value = found.sizes.get(name)
            change = (
                "" if found is known[0] or value is None or name not in base else _change(value - base[name])
            )
            cells.append("-" if value is None else f"{value}{change}")
        whole = [found.sizes.get(n) for n in _KNOWN]
        total = [base.get(n) for n in _KNOWN]
        summed = "-"
        if None not in whole:
            both = sum(v or 0 for v in whole)
            summed = str(both) + (
                "" if found is known[0] or None in total else _change(both - sum(v or 0 for v in total))
            )
        rows.append((found.name, *cells, summed))
    return ["sizes in bytes", *table(("KERNEL", *names, "dec"), rows, right=True), ""]


def _change(difference: int) -> str:
    return f" ({difference:+d})" if difference else " (same)"
