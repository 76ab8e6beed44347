"""MMTests' comparison: a block of statistics for each metric, a column a kernel.

Positive is better whatever the direction; Hmean where higher is better, Amean where lower is; *x%* where the
difference is significant. BAmean-N (BHmean-N) is the mean of the best N percent of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.table import verdicts
from bisector.stats.comparison_table import Row, Sheet

_BEST = (50, 95, 99)
Statistic = Callable[[Sequence[float]], float]


def render(sheet: Sheet) -> str:
    """Return the table, one block a testbed."""
    out: list[str] = []
    for group in sheet.groups:
        if group.testbed:
            out += [f"testbed {group.testbed}", ""]
        rows = [line for row in group.rows for line in _lines(row)]
        wide = max((len(f"{stat:<10}{metric}") for stat, metric, _ in rows), default=10) + 2
        cells = max([len(c) for _, _, cs in rows for c in cs] + [24])
        heads = [_folded(name, cells - 1) for name in sheet.names]
        for i in range(max(map(len, heads))):
            out.append(" " * wide + "".join((h[i] if i < len(h) else "").rjust(cells) for h in heads))
        out += [
            f"{stat:<10}{metric}".ljust(wide) + "".join(c.rjust(cells) for c in cs)
            for stat, metric, cs in rows
        ]
        out += ["", *kernel_sizes.lines(group)]
    out.append("Positive is better; *x%* is significant.")
    out += ["", *verdicts(sheet)]
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def _lines(row: Row) -> list[tuple[str, str, list[str]]]:
    higher = row.better == "higher"
    mean, best = ("Hmean", "BHmean") if higher else ("Amean", "BAmean")
    if any(v <= 0 for s in row.series if s is not None for v in s.values):
        mean, best = "Amean", "BAmean"  # a harmonic mean needs positive numbers
    middle = _harmonic if mean == "Hmean" else _arithmetic
    published = any(s is not None and s.published for s in row.series)
    runs = max((len(s.values) for s in row.series if s is not None), default=0)
    every: list[tuple[str, Statistic, bool]] = [(mean, middle, higher)]
    if runs > 1 and not published:
        every = [
            ("Min", min, higher),
            (mean, middle, higher),
            ("Stddev", _deviation, False),
            (
                "CoeffVar",
                lambda v: 100 * _deviation(v) / abs(_arithmetic(v)) if _arithmetic(v) else 0.0,
                False,
            ),
            ("Max", max, higher),
            *((f"{best}-{n}", _best(n, higher, middle), higher) for n in _BEST),
        ]
    out = []
    for name, statistic, more in every:
        numbers = [statistic(s.values) if s is not None and s.values else None for s in row.series]
        cells = []
        for i, number in enumerate(numbers):
            if number is None:
                cells.append("-" + " " * 13)
                continue
            found = row.comparisons[i - 1] if i else None
            stars = name == mean and found is not None and found.significant
            cells.append(_cell(number, gain(numbers[0], number, higher=more), stars=stars))
        out.append((name, row.metric, cells))
    return out


def gain(base: float | None, value: float, *, higher: bool) -> float | None:
    """Return the gain in percent of the base, positive is better; None without a base."""
    if base is None or base == 0:
        return 0.0 if base == value else None
    change = 100 * (value - base) / abs(base)
    return (change if higher else -change) or 0.0  # never minus zero


def _cell(number: float, change: float | None, *, stars: bool) -> str:
    text = "?".rjust(7) if change is None else f"{change:7.2f}"
    if text.strip() == "-0.00":
        text = f"{0:7.2f}"
    value = f"{number:.2f}" if abs(number) >= 1 or number == 0 else f"{number:.4g}"
    return f"{value} *{text}%*" if stars else f"{value} ({text}%)"


def _arithmetic(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _harmonic(values: Sequence[float]) -> float:
    return len(values) / math.fsum(1 / v for v in values)


def _deviation(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = _arithmetic(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _best(percent: int, higher: bool, middle: Statistic) -> Statistic:
    def of(values: Sequence[float]) -> float:
        ordered = sorted(values, reverse=higher)
        return middle(ordered[: max(1, len(ordered) * percent // 100)])

    return of


def _folded(name: str, width: int) -> list[str]:
    """Return a kernel's name in lines that fit a column: release above, flavour below, as MMTests does."""
    if len(name) <= width and "-" not in name:
        return [name]
    out, rest = [], name
    while len(rest) > width:
        cut = rest.rfind("-", 1, width)
        cut = cut if cut > 0 else width
        out.append(rest[:cut])
        rest = rest[cut:].removeprefix("-")
    return [*out, rest]
