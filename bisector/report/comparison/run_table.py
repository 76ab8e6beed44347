"""Every run in a table with its average, one table a kernel; then what changed, positive is better."""

from __future__ import annotations

from bisector.model.format import interval, percent
from bisector.report import phrases
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.columns import table
from bisector.report.comparison.mmtests import gain
from bisector.report.comparison.table import p_value, verdicts
from bisector.stats.comparison_table import Group, Sheet

_ACROSS = 10
"""Runs in a line; ten of six characters and the average fit a terminal."""


def render(sheet: Sheet) -> str:
    """Return the tables."""
    out: list[str] = []
    for group in sheet.groups:
        for i, name in enumerate(sheet.names):
            out += [f"{group.testbed}: {name}" if group.testbed else name, *_runs(group, i), ""]
        out += [line for column in range(1, len(sheet.names)) for line in _changes(group, sheet, column)]
        out += kernel_sizes.lines(group)
    out += verdicts(sheet)
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def _runs(group: Group, column: int) -> list[str]:
    rows = [(r, s) for r in group.rows if (s := r.series[column]) is not None and s.values]
    longest = max((len(s.values) for _, s in rows), default=0)
    out: list[str] = []
    for start in range(0, longest, _ACROSS):
        end = min(start + _ACROSS, longest)
        last = end == longest
        body = []
        for row, series in rows:
            cells = [f"{v:.10g}" for v in series.values[start:end]]
            cells += [""] * (end - start - len(cells))
            cell = row.cells[column]
            average = f"{cell.mean:.7g} {row.unit}".rstrip() if last and cell is not None else ""
            body.append((row.metric, *cells, average))
        out += table(("", *(str(n + 1) for n in range(start, end)), "AVG" if last else ""), body, right=True)
    return out


def _changes(group: Group, sheet: Sheet, column: int) -> list[str]:
    out = []
    for row in group.rows:
        found = row.comparisons[column - 1]
        base, other = row.cells[0], row.cells[column]
        if found is None or base is None or other is None:
            continue
        change = gain(base.mean, other.mean, higher=row.better == "higher")
        text = "?" if change is None else f"{change:+.2f}%"
        sure = f", p {p_value(found.p)}" if found.p is not None else ", not tested"
        if not found.significant and found.p is not None:
            sure += ", not shown"
        out.append(
            f"{row.metric}: AVG {text} ({found.word}{sure}); Hodges-Lehmann "
            f"{percent(found.effect.estimate, 2)} of the number, interval {interval(found.effect)}"
        )
    head = f"{sheet.names[0]} -> {sheet.names[column]} (AVG: positive is better)"
    return [head, *(line for text in out for line in phrases.wrap(text, "  ", "      ")), ""] if out else []
