"""The form of the kernel test robot's mails: value, change, value, metric; the spread only above 2%."""

from __future__ import annotations

from bisector.report.comparison import kernel_sizes
from bisector.report.comparison.table import verdicts
from bisector.stats.comparison import Comparison, Summary
from bisector.stats.comparison_table import Sheet

_VALUE, _CHANGE, _SPREAD = 10, 10, 6
_SHOWN = 0.02
_SLASH = "\\"


def render(sheet: Sheet) -> str:
    """Return one block a testbed and compared kernel."""
    out: list[str] = []
    for group in sheet.groups:
        for column, name in enumerate(sheet.names[1:]):
            rows = [(r, c) for r in group.rows if (c := r.comparisons[column]) is not None]
            if not rows:
                continue
            if group.testbed:
                out.append(f"testbed: {group.testbed}")
            left, right = _VALUE + _SPREAD, _CHANGE + 1 + _VALUE + _SPREAD
            out.append(f"{sheet.names[0][:left]:<{left}} {name[:right]:<{right}}")
            out.append(f"{'-' * left} {'-' * right}")
            out.append(f"{'%stddev':>{left}}{'%change':>{_CHANGE + 1}}{'%stddev':>{_VALUE + _SPREAD}}")
            out.append(_SLASH.rjust(left - 3) + "|".rjust(_CHANGE + 4) + _SLASH.rjust(_VALUE + _SPREAD))
            out += [_line(metric.metric, metric.unit, found) for metric, found in rows]
            out.append("")
        out += kernel_sizes.lines(group)
    out += verdicts(sheet)
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def _line(metric: str, unit: str, found: Comparison) -> str:
    # of a percentage the change in points is told: 12% -> 18% is +6.0, not +50%
    points = unit == "%" or metric.endswith(("%", "_pct"))
    change = f"{found.b.mean - found.a.mean:+.1f}" if points else f"{100 * found.mean.estimate:+.1f}%"
    said = f" ({found.word})" if found.significant else "" if found.verdict == "untested" else " (not shown)"
    return f"{_value(found.a)}{change:>{_CHANGE}} {_value(found.b)}  {metric}{said}"


def _value(summary: Summary) -> str:
    text = f"{summary.mean:.0f}" if abs(summary.mean) >= 1000 else f"{summary.mean:.2f}"
    spread = f" ± {100 * summary.cv:2.0f}%" if summary.cv > _SHOWN else ""
    return f"{text:>{_VALUE}}{spread:<{_SPREAD}}"
