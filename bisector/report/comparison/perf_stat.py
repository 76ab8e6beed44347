"""perf stat's forms: kernels down and counters across with (+1.42) percent, and means with their +-%.

In brackets the number's own change: (+1.42) means 1.42% more of it. The gain of the second form is positive
where that is better, and says so.
"""

from __future__ import annotations

from bisector.report import phrases
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.columns import table
from bisector.report.comparison.mmtests import gain
from bisector.report.comparison.table import verdicts
from bisector.stats.comparison import Summary
from bisector.stats.comparison_table import Group, Row, Sheet

_ACROSS = 5
"""Counters in a line: instructions, cycles, branches, time and their ratio fit a wide terminal."""


def render(sheet: Sheet) -> str:
    """Return both forms, the second where spreads are known."""
    out: list[str] = []
    for group in sheet.groups:
        out += _relative(group, sheet)
        out += _errors(group, sheet)
        out += kernel_sizes.lines(group)
    if sheet.same:
        out += ["Both are one kernel: the brackets are its run-to-run variation.", ""]
    out += verdicts(sheet)
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def _relative(group: Group, sheet: Sheet) -> list[str]:
    out = []
    for start in range(0, len(group.rows), _ACROSS):
        some = group.rows[start : start + _ACROSS]
        body = []
        for i, name in enumerate(sheet.names):
            cells = [_cell(row, i) for row in some]
            body.append((f"[{name}]" if i == 0 else f"+{name}", *cells, "[rel]" if i else "[baseline]"))
        out += [*table((group.testbed, *(_titled(r.metric, r.unit) for r in some), ""), body), ""]
    return out


def _cell(row: Row, column: int) -> str:
    cell = row.cells[column]
    if cell is None:
        return f"<{row.why[column]}>"
    found = row.comparisons[column - 1] if column else None
    return amount(cell.mean, row.unit) + (f" ({bracket(found.mean.estimate)})" if found else "")


def _errors(group: Group, sheet: Sheet) -> list[str]:
    rows = []
    for row in group.rows:
        if not any(c is not None and c.error is not None for c in row.cells):
            continue
        for i, name in enumerate(sheet.names[1:], start=1):
            base, other, found = row.cells[0], row.cells[i], row.comparisons[i - 1]
            if base is None or other is None or found is None:
                continue
            change = gain(base.mean, other.mean, higher=row.better == "higher")
            rows.append(
                (
                    row.metric,
                    amount(base.mean, row.unit, grouped=True),
                    _error(base),
                    amount(other.mean, row.unit, grouped=True),
                    _error(other),
                    "?" if change is None else f"{change:.2f}%",
                    found.word if found.verdict != "unclear" else f"{found.word}?",
                    name,
                )
            )
    if not rows:
        return []
    head = ("", sheet.names[0], "", "", "", "gain", "", "")
    return [*table(head, rows, right=True), ""]


def bracket(change: float) -> str:
    """Return '+1.42' for 0.0142; the sign is the unrounded number's, so (-0.00) is a little less."""
    return f"{100 * change:+.2f}"


def amount(value: float, unit: str, *, grouped: bool = False) -> str:
    """Return a count as an integer (with separators if `grouped`), seconds with perf's nine places."""
    if float(value).is_integer() or abs(value) >= 1e6:
        return f"{value:,.0f}" if grouped else f"{value:.0f}"
    return f"{value:.9f}" if unit == "s" else phrases.number(value)


def _error(summary: Summary) -> str:
    return "" if summary.error is None else f"+-{100 * summary.error:.2f}%"


def _titled(metric: str, unit: str) -> str:
    return f"{metric} [{unit}]" if unit and unit != "s" else metric
