"""MMTests' comparison: a block of statistics for each metric, a column a kernel.

Positive is better whatever the direction; Hmean where higher is better, Amean where lower is; *x%* where the
difference is significant. BAmean-N (BHmean-N) is the mean of the best N percent of runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bisector.report import phrases
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.from_zero import FROM_ZERO
from bisector.stats.comparison_table import ComparisonRow, ComparisonTable

_BEST_PERCENT = (50, 95, 99)
"""The shares of best runs that MMTests has means of."""
_MIN_CELL_WIDTH = 24
"""Fewest characters of a column: chosen, so that columns of short numbers stand apart."""
Floats = NDArray[np.float64]
Statistic = Callable[[Floats], float]


def render(table: ComparisonTable) -> str:
    """Return the table, one block a testbed."""
    out: list[str] = []
    for testbed in table.testbeds:
        if testbed.name:
            out += [f"testbed {testbed.name}", ""]
        rows = [line for row in testbed.rows for line in _lines(row)]
        width = max((len(title) for title, _ in rows), default=10) + 2
        cell_width = max([len(c) for _, cells in rows for c in cells] + [_MIN_CELL_WIDTH])
        heads = [_fold(name, cell_width - 1) for name in table.names] if rows else [[]]
        for i in range(max(map(len, heads))):
            out.append(" " * width + "".join((h[i] if i < len(h) else "").rjust(cell_width) for h in heads))
        out += [title.ljust(width) + "".join(c.rjust(cell_width) for c in cells) for title, cells in rows]
        out += [""] * bool(rows) + kernel_sizes.lines(testbed)
    if any(testbed.rows for testbed in table.testbeds):
        out += ["Positive is better; *x%* is significant.", ""]
    return phrases.page([*out, *phrases.remarks(table.sentences, table.warnings)])


def _lines(row: ComparisonRow) -> list[tuple[str, list[str]]]:
    """Return (title, one cell a kernel) of each statistic."""
    higher = row.better == "higher"
    positive = all(v > 0 for s in row.series if s is not None for v in s.values)
    kind = "H" if higher and positive else "A"  # a harmonic mean needs positive numbers
    mean: Statistic = _harmonic_mean if kind == "H" else np.mean
    best_first = [
        np.sort(s.values)[:: -1 if higher else 1] if s is not None and s.values else None for s in row.series
    ]
    published = any(s is not None and s.published for s in row.series)
    runs = max((len(values) for values in best_first if values is not None), default=0)
    wanted: list[tuple[str, Statistic, bool]] = [(f"{kind}mean", mean, higher)]
    if runs > 1 and not published:
        wanted = [
            ("Min", np.min, higher),
            *wanted,
            ("Stddev", _sd, False),
            ("CoeffVar", _percent_sd, False),
            ("Max", np.max, higher),
            *((f"B{kind}mean-{n}", _mean_of_best(n, mean), higher) for n in _BEST_PERCENT),
        ]
    out = []
    for name, statistic, more_is_better in wanted:
        numbers = [float(statistic(values)) if values is not None else None for values in best_first]
        cells = []
        for i, number in enumerate(numbers):
            found = row.comparisons[i - 1] if i else None
            marked = statistic is mean and found is not None and found.significant
            cells.append(_cell(number, numbers[0], higher=more_is_better, marked=marked))
        out.append((f"{name:<10}{row.metric}", cells))
    return out


def gain(base: float | None, value: float, *, higher: bool) -> float | None:
    """Return the gain in percent of the base, positive is better; None without a base."""
    if base is None or base == 0:
        return 0.0 if base == value else None
    change = 100 * (value - base) / abs(base)
    return (change if higher else -change) or 0.0  # never minus zero


def _cell(number: float | None, base: float | None, *, higher: bool, marked: bool) -> str:
    if number is None:
        return "-" + " " * 13
    change = gain(base, number, higher=higher)
    text = FROM_ZERO.rjust(8) if change is None else f"{change:7.2f}%".replace("-0.00", " 0.00")
    value = f"{number:.2f}" if abs(number) >= 1 or number == 0 else f"{number:.4g}"
    return f"{value} *{text}*" if marked else f"{value} ({text})"


def _harmonic_mean(values: Floats) -> float:
    return float(len(values) / (1 / values).sum())


def _sd(values: Floats) -> float:
    return float(values.std(ddof=1)) if np.ptp(values) else 0.0


def _percent_sd(values: Floats) -> float:
    mean = float(values.mean())
    return 100 * _sd(values) / abs(mean) if mean else 0.0


def _mean_of_best(percent: int, mean: Statistic) -> Statistic:
    return lambda best_first: mean(best_first[: max(1, len(best_first) * percent // 100)])


def _fold(name: str, width: int) -> list[str]:
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
