"""The default form: a line a metric with change, interval, p-value and words; then sizes and remarks."""

from __future__ import annotations

import math

from bisector.model.format import effect_size, interval, percent, places, signed, signed_limits
from bisector.report import phrases
from bisector.report.columns import fit
from bisector.report.comparison import kernel_sizes
from bisector.stats.comparison_result import Comparison, SetSummary
from bisector.stats.comparison_table import ComparisonTable, TestbedTable

_MIN_SPREAD = 0.0005
"""Share of the mean: a smaller spread would be printed as 0.0%."""
_MAX_TESTBEDS = 4
"""Testbeds side by side in one table, so that it fits a terminal; more go below."""


def render(table: ComparisonTable, width: int | None = None) -> str:
    """Return the comparison for people. width: characters of a line, None for any number."""
    out = _by_testbed(table, width)
    for testbed in table.testbeds:
        for column, name in enumerate(table.names[1:]):
            rows = [
                _row(row.metric, row.unit, found, table.threshold)
                for row in testbed.rows
                if (found := row.comparisons[column]) is not None
            ]
            if not rows:
                continue
            where = f"{testbed.name}: " if testbed.name else ""
            itself = "  (one kernel against itself)" if table.same else ""
            head = ("METRIC", "BASE", "OTHER", "CHANGE", f"{1 - table.alpha:.0%} INTERVAL", "MEAN", "P")
            lines = fit(head, rows, width, wrapped=["BASE", "OTHER", "CHANGE"], dropped=["MEAN", "P"])
            out += [f"{where}{table.names[0]} -> {name}{itself}", *lines, ""]
        out += kernel_sizes.lines(testbed)
    return phrases.page([*out, *phrases.remarks(table.sentences, table.warnings, width)])


def _by_testbed(table: ComparisonTable, width: int | None) -> list[str]:
    """Return, for several testbeds, the change of every metric on each, side by side."""
    if len(table.testbeds) < 2:
        return []
    out = []
    metrics = list(dict.fromkeys(row.metric for testbed in table.testbeds for row in testbed.rows))
    for column, name in enumerate(table.names[1:]):
        for start in range(0, len(table.testbeds), _MAX_TESTBEDS):
            some = table.testbeds[start : start + _MAX_TESTBEDS]
            rows = [
                (metric, *(_cell(t, metric, column, table.threshold) for t in some)) for metric in metrics
            ]
            head = ("METRIC", *(t.name or "-" for t in some))
            lines = fit(head, rows, width, wrapped=head[1:])
            out += [f"{table.names[0]} -> {name} by testbed", *lines, ""]
    return out


def _cell(testbed: TestbedTable, metric: str, column: int, threshold: float) -> str:
    row = next((r for r in testbed.rows if r.metric == metric), None)
    found = row.comparisons[column] if row is not None else None
    return "-" if found is None else change(found, threshold)


def _row(metric: str, unit: str, found: Comparison, threshold: float) -> tuple[str, ...]:
    return (
        metric,
        level(found.a, unit),
        level(found.b, unit),
        change(found, threshold),
        limits(found),
        mean_change(found),
        "-" if found.p is None else p_value(found.p),
    )


def change(found: Comparison, threshold: float) -> str:
    """Return '+8.62% slower', or '~' with what that means."""
    if found.verdict != "untested" and not found.significant:
        return "~ the same" if found.verdict == "same" and threshold else "~ not shown"
    untested = ", not tested" if found.verdict == "untested" else ""
    if of_zero(found):
        return f"{signed(found.plain.estimate, found.unit)} {found.word}{untested}"
    told = effect_size(found.effect, 2)
    return f"{told} {found.word if told[0] in '+-?' else 'the same'}{untested}"


def of_zero(found: Comparison) -> bool:
    """Return whether the base reads 0, of which there are no percentages: the change is given in its unit."""
    return not math.isfinite(found.effect.estimate) and math.isfinite(found.plain.estimate)


def shift(found: Comparison) -> str:
    """Return the change: in percent of the number, or in the metric's unit where the base reads 0."""
    if of_zero(found):
        return signed(found.plain.estimate, found.unit)
    return f"{effect_size(found.effect, 2)} of the number"


def limits(found: Comparison) -> str:
    """Return the interval of a change: in percent, or in the metric's unit where the base reads 0."""
    if not of_zero(found) or not math.isfinite(found.plain.high - found.plain.low):
        return interval(found.effect, places(found.effect, 2))
    return signed_limits(found.plain, found.unit)


def mean_change(found: Comparison) -> str:
    """Return the change of the mean, as `limits` does."""
    if math.isfinite(found.mean.estimate):
        return percent(found.mean.estimate, places(found.effect, 2))
    return signed(found.b.mean - found.a.mean, found.unit)


def level(summary: SetSummary, unit: str) -> str:
    """Return '5.3242 s ± 0.4% (8)': mean, spread of runs, how many; '+-' is a published mean's error."""
    text = phrases.number(summary.mean) + (f" {unit}" if unit else "")
    if summary.cv > _MIN_SPREAD:
        text += f" ± {100 * summary.cv:.1f}%"
    elif summary.error is not None and summary.error > _MIN_SPREAD:
        text += f" +-{100 * summary.error:.2f}%"
    return text + (f" ({summary.runs})" if summary.runs > 1 else "")


def p_value(p: float) -> str:
    """Return a p-value with the digits that are significant."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"
