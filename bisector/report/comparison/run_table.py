"""Every run in a table with its average, one table a kernel; then what changed, positive is better."""

from __future__ import annotations

from bisector.model.format import places
from bisector.report import phrases
from bisector.report.columns import align
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.from_zero import FROM_ZERO
from bisector.report.comparison.mmtests_form import gain
from bisector.report.comparison.table import limits, p_value, shift
from bisector.stats.comparison_table import ComparisonTable, TestbedTable

_MAX_RUNS = 10
"""Runs in a line; ten of six characters and the average fit a terminal."""


def render(table: ComparisonTable) -> str:
    """Return the tables."""
    out: list[str] = []
    for testbed in table.testbeds:
        for i, name in enumerate(table.names):
            out += [f"{testbed.name}: {name}" if testbed.name else name, *_runs(testbed, i), ""]
        for i, name in enumerate(table.names[1:]):
            changes = _changes(testbed, i)
            if changes:
                out += [f"{table.names[0]} -> {name} (AVG: positive is better)", *changes, ""]
        out += kernel_sizes.lines(testbed)
    return phrases.page([*out, *phrases.remarks(table.sentences, table.warnings)])


def _runs(testbed: TestbedTable, column: int) -> list[str]:
    rows = [(r, s.values) for r in testbed.rows if (s := r.series[column]) is not None and s.values]
    longest = max((len(values) for _, values in rows), default=0)
    out: list[str] = []
    for start in range(0, longest, _MAX_RUNS):
        end = min(start + _MAX_RUNS, longest)
        last = end == longest
        lines = []
        for row, values in rows:
            cells = [f"{v:.10g}" for v in values[start:end]]
            cells += [""] * (end - start - len(cells))
            cell = row.cells[column]
            average = f"{cell.mean:.7g} {row.unit}".rstrip() if last and cell is not None else ""
            lines.append((row.metric, *cells, average))
        out += align(("", *(str(n + 1) for n in range(start, end)), "AVG" if last else ""), lines, right=True)
    return out


def _changes(testbed: TestbedTable, column: int) -> list[str]:
    out = []
    for row in testbed.rows:
        found = row.comparisons[column]
        if found is None:
            continue
        change = gain(found.a.mean, found.b.mean, higher=row.better == "higher")
        size = FROM_ZERO if change is None else f"{change:+.{places(found.effect, 2)}f}%"
        tested = f", p {p_value(found.p)}" if found.p is not None else ", not tested"
        if found.p is not None and not found.significant:
            tested += ", not shown"
        out += phrases.wrap(
            f"{row.metric}: AVG {size} ({found.word}{tested}); Hodges-Lehmann {shift(found)}, interval "
            f"{limits(found)}",
            "  ",
            "      ",
        )
    return out
