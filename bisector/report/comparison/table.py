"""The default form: a line a metric with change, interval, p-value and words; then sizes and doubts."""

from __future__ import annotations

from bisector.model.format import interval, percent
from bisector.report import phrases
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.columns import table
from bisector.stats.comparison import Comparison, Summary
from bisector.stats.comparison_table import Group, Sheet

_SPREAD_SHOWN = 0.0005
"""Of the mean: a spread that rounds to 0.0% is not worth ink."""
_TESTBEDS = 4
"""Testbeds side by side in one table; more go below."""
_HEAD = ("METRIC", "BASE", "OTHER", "CHANGE", "INTERVAL", "MEAN", "P")


def render(sheet: Sheet) -> str:
    """Return the comparison for people."""
    out = _by_testbed(sheet)
    for group in sheet.groups:
        for column, name in enumerate(sheet.names[1:]):
            rows = [
                _row(row.metric, row.unit, found, sheet.threshold)
                for row in group.rows
                if (found := row.comparisons[column]) is not None
            ]
            if not rows:
                continue
            where = f"{group.testbed}: " if group.testbed else ""
            title = f"{where}{sheet.names[0]} -> {name}"
            if sheet.same:
                title += "  (one kernel against itself)"
            out += [title, *table((*_HEAD[:4], f"{1 - sheet.alpha:.0%} {_HEAD[4]}", *_HEAD[5:]), rows), ""]
        out += kernel_sizes.lines(group)
    out += verdicts(sheet)
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def _by_testbed(sheet: Sheet) -> list[str]:
    """Return, for several testbeds, the change of every metric on each, side by side."""
    if len(sheet.groups) < 2:
        return []
    out = []
    metrics = list(dict.fromkeys(row.metric for group in sheet.groups for row in group.rows))
    for column, name in enumerate(sheet.names[1:]):
        for start in range(0, len(sheet.groups), _TESTBEDS):
            some = sheet.groups[start : start + _TESTBEDS]
            rows = [
                (metric, *(_change(group, metric, column, sheet) for group in some)) for metric in metrics
            ]
            out += [
                f"{sheet.names[0]} -> {name} by testbed",
                *table(("METRIC", *(group.testbed or "-" for group in some)), rows),
                "",
            ]
    return out


def _change(group: Group, metric: str, column: int, sheet: Sheet) -> str:
    row = next((r for r in group.rows if r.metric == metric), None)
    found = row.comparisons[column] if row is not None else None
    return "-" if found is None else _said(found, sheet.threshold)


def verdicts(sheet: Sheet) -> list[str]:
    """Return what every text form ends with: disagreement in sentences, warnings."""
    out: list[str] = []
    for sentence in sheet.sentences:
        out += [*phrases.wrap(sentence, ""), ""]
    for warning in sheet.warnings:
        out += phrases.wrap(f"note: {warning}", "", "      ")
    return out


def _row(metric: str, unit: str, found: Comparison, threshold: float) -> tuple[str, ...]:
    return (
        metric,
        level(found.a, unit),
        level(found.b, unit),
        _said(found, threshold),
        interval(found.effect),
        percent(found.mean.estimate, 2),
        "-" if found.p is None else p_value(found.p),
    )


def _said(found: Comparison, threshold: float) -> str:
    """Return '+8.62% slower', or '~' with what that means."""
    if found.verdict != "untested" and not found.significant:
        return "~ the same" if found.verdict == "same" and threshold else "~ not shown"
    untested = ", not tested" if found.verdict == "untested" else ""
    change = percent(found.effect.estimate, 2)
    return f"{change} {found.word if change != percent(0.0, 2) else 'the same'}{untested}"


def level(summary: Summary, unit: str) -> str:
    """Return '5.3242 s ± 0.4% (8)': mean, spread of runs, how many; '+-' is a published mean's error."""
    text = phrases.number(summary.mean) + (f" {unit}" if unit else "")
    if summary.cv > _SPREAD_SHOWN:
        text += f" ± {100 * summary.cv:.1f}%"
    elif summary.error is not None and summary.error > _SPREAD_SHOWN:
        text += f" +-{100 * summary.error:.2f}%"
    return text + (f" ({summary.runs})" if summary.runs > 1 else "")


def p_value(p: float) -> str:
    """Return a p-value with two digits that mean something."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"
