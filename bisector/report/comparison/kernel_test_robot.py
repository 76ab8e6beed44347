"""The form of the kernel test robot's mails: value, change, value, metric; the spread only above 2%."""

from __future__ import annotations

from bisector.report import phrases
from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.from_zero import FROM_ZERO, mean_change
from bisector.stats.comparison_result import Comparison, SetSummary
from bisector.stats.comparison_table import ComparisonTable

_VALUE_WIDTH, _CHANGE_WIDTH, _SPREAD_WIDTH = 10, 10, 6
_MIN_SPREAD = 0.02
"""Share of the mean below which no spread is shown, as in the robot's mails."""


def render(table: ComparisonTable) -> str:
    """Return one block a testbed and compared kernel."""
    out: list[str] = []
    for testbed in table.testbeds:
        for column, name in enumerate(table.names[1:]):
            rows = [(r, c) for r in testbed.rows if (c := r.comparisons[column]) is not None]
            if not rows:
                continue
            if testbed.name:
                out.append(f"testbed: {testbed.name}")
            out += _head(table.names[0], name)
            out += [_line(row.metric, row.unit, found) for row, found in rows]
            out.append("")
        out += kernel_sizes.lines(testbed)
    return phrases.page([*out, *phrases.remarks(table.sentences, table.warnings)])


def _head(base: str, other: str) -> list[str]:
    left = _VALUE_WIDTH + _SPREAD_WIDTH
    right = _CHANGE_WIDTH + 1 + left
    return [
        f"{base[:left]:<{left}} {other[:right]:<{right}}",
        f"{'-' * left} {'-' * right}",
        f"{'%stddev':>{left}}{'%change':>{_CHANGE_WIDTH + 1}}{'%stddev':>{left}}",
        "\\".rjust(left - 3) + "|".rjust(_CHANGE_WIDTH + 4) + "\\".rjust(left),
    ]


def _line(metric: str, unit: str, found: Comparison) -> str:
    # The change of a percentage is given in points: 12% -> 18% is +6.0, not +50%.
    points = unit == "%" or metric.endswith(("%", "_pct"))
    if points:
        change = f"{found.b.mean - found.a.mean:+.1f}"
    else:
        percent = mean_change(found)
        size = percent or 0.0
        # A change that is shown is not '+0.0%', whatever the robot's one place makes of it.
        digits = phrases.tenths(size, "+") if found.significant else f"{size:+.1f}"
        change = FROM_ZERO if percent is None else f"{digits}%"
    word = f" ({found.word})" if found.significant else "" if found.verdict == "untested" else " (not shown)"
    return f"{_value(found.a)}{change:>{_CHANGE_WIDTH}} {_value(found.b)}  {metric}{word}"


def _value(summary: SetSummary) -> str:
    size = abs(summary.mean)  # the robot's two places would leave nothing of 20 us
    text = f"{summary.mean:.0f}" if size >= 1000 else f"{summary.mean:{'.4g' if 0 < size < 1 else '.2f'}}"
    spread = f" ± {100 * summary.cv:2.0f}%" if summary.cv > _MIN_SPREAD else ""
    return f"{text:>{_VALUE_WIDTH}}{spread:<{_SPREAD_WIDTH}}"
