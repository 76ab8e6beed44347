"""perf stat's forms: kernels down and counters across with (+1.42) percent, and means with their +-%.

The brackets hold the number's own change: (+1.42) means 1.42% more of it. The gain of the second form is
positive where that is better, and its column is called 'gain'.
"""

from __future__ import annotations

from bisector.report import phrases
from bisector.report.columns import align
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.from_zero import FROM_ZERO, mean_change
from bisector.report.comparison.mmtests_form import gain
from bisector.stats.comparison_result import SetSummary
from bisector.stats.comparison_table import ComparisonRow, ComparisonTable, TestbedTable

_MAX_COUNTERS = 5
"""Counters in a line: instructions, cycles, branches, time and their ratio fit a wide terminal."""


def render(table: ComparisonTable) -> str:
    """Return both forms, the second where spreads are known."""
    out: list[str] = []
    for testbed in table.testbeds:
        out += _relative(testbed, table.names)
        out += _with_errors(testbed, table.names)
        out += kernel_sizes.lines(testbed)
    if table.same:
        out += ["Both are one kernel: the brackets are its run-to-run variation.", ""]
    return phrases.page([*out, *phrases.remarks(table.sentences, table.warnings)])


def _relative(testbed: TestbedTable, names: tuple[str, ...]) -> list[str]:
    out = []
    for start in range(0, len(testbed.rows), _MAX_COUNTERS):
        some = testbed.rows[start : start + _MAX_COUNTERS]
        lines = [
            (
                f"+{name}" if i else f"[{name}]",
                *(_cell(row, i) for row in some),
                "[rel]" if i else "[baseline]",
            )
            for i, name in enumerate(names)
        ]
        out += [*align((testbed.name, *(_title(r.metric, r.unit) for r in some), ""), lines), ""]
    return out


def _cell(row: ComparisonRow, column: int) -> str:
    cell = row.cells[column]
    if cell is None:
        return f"<{row.why[column]}>"
    found = row.comparisons[column - 1] if column else None
    # The sign is the unrounded number's, so (-0.00) is a little less.
    if found is None:
        return _amount(cell.mean, row.unit)
    change = mean_change(found)
    return f"{_amount(cell.mean, row.unit)} ({FROM_ZERO if change is None else f'{change:+.2f}'})"


def _with_errors(testbed: TestbedTable, names: tuple[str, ...]) -> list[str]:
    rows = []
    for row in testbed.rows:
        if not any(c is not None and c.error is not None for c in row.cells):
            continue
        for name, found in zip(names[1:], row.comparisons, strict=True):
            if found is None:
                continue
            change = gain(found.a.mean, found.b.mean, higher=row.better == "higher")
            rows.append(
                (
                    row.metric,
                    _amount(found.a.mean, row.unit, grouped=True),
                    _error(found.a),
                    _amount(found.b.mean, row.unit, grouped=True),
                    _error(found.b),
                    FROM_ZERO if change is None else f"{change:.2f}%",
                    found.word if found.verdict != "unclear" else f"{found.word}?",
                    name,
                )
            )
    return [*align(("", names[0], "", "", "", "gain", "", ""), rows, right=True), ""] if rows else []


def _amount(value: float, unit: str, *, grouped: bool = False) -> str:
    """Return a count as an integer (with separators if `grouped`), seconds with perf's nine places."""
    if unit == "s" and abs(value) < 1e6 and not float(value).is_integer():
        return f"{value:.9f}"
    return phrases.amount(value) if grouped else phrases.amount(value).replace(",", "")


def _error(summary: SetSummary) -> str:
    return "" if summary.error is None else f"+-{100 * summary.error:.2f}%"


def _title(metric: str, unit: str) -> str:
    return f"{metric} [{unit}]" if unit and unit != "s" else metric
