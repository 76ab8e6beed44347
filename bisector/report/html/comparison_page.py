"""The page of a comparison: for each pair of kernels the changes with intervals, then every run."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from bisector.report.comparison.kernel_sizes import lines as size_lines
from bisector.report.comparison.table import change, level, limits, mean_change, p_value
from bisector.report.html import effect_chart, page_assets, self_contained, svg
from bisector.report.html.escaping import element
from bisector.stats.comparison_table import ComparisonRow, ComparisonTable, TestbedTable

_MAX_DRAWN = 40
"""Metrics of a drawing of effects, and strips of samples on a page: more are read as a table."""
_STRIP = 24
"""Pixels of a kernel's strip."""
_MAX_NAME = 26
"""Characters of the names at its left: a fifth of the drawing."""
HEAD = ("Metric", "Base", "Other", "Change", "Interval", "Mean", "p")


def render(table: ComparisonTable) -> str:
    """Return the page as one file."""
    title = " -> ".join(table.names)
    return self_contained.render("comparison.html.j2", title=title, comparison=content(table))


def render_sections(table: ComparisonTable) -> Markup:
    """Return the sections alone, to be put into another page."""
    return page_assets.render("comparison_sections.html.j2", comparison=content(table))


def content(table: ComparisonTable) -> dict[str, Any]:
    """Return what the template shows."""
    pairs = [
        _pair(table, testbed, column, number)
        for number, testbed in enumerate(table.testbeds)
        for column in range(len(table.names) - 1)
    ]
    strips = [
        (testbed.name, row.metric, _strip(table, row, f"strip-{number}-{at}"))
        for number, testbed in enumerate(table.testbeds)
        for at, row in enumerate(testbed.rows[:_MAX_DRAWN])
        if sum(1 for s in row.series if s is not None and s.values) > 1
    ]
    return {
        "pairs": [pair for pair in pairs if pair is not None],
        "head": HEAD,
        "strips": strips,
        "sentences": table.sentences,
        "warnings": table.warnings,
        "sizes": [line for testbed in table.testbeds for line in size_lines(testbed)],
        "interval": f"{1 - table.alpha:.0%}",
        "same": table.same,
    }


def _pair(table: ComparisonTable, testbed: TestbedTable, column: int, number: int) -> dict[str, Any] | None:
    """Return the table and the drawing of one kernel against the base; None without a common metric."""
    found = [(row, c) for row in testbed.rows if (c := row.comparisons[column]) is not None]
    if not found:
        return None
    drawn = [
        (row.metric, c.effect, {"worse": "new", "better": "old"}.get(c.verdict, ""))
        for row, c in found[:_MAX_DRAWN]
        if math.isfinite(c.effect.estimate)
    ]
    where = f"{testbed.name}: " if testbed.name else ""
    title = f"{where}{table.names[0]} -> {table.names[column + 1]}"
    return {
        "title": title,
        "chart": effect_chart.render(f"effects-{number}-{column}", title, drawn, table.threshold, least=2)
        if drawn
        else None,
        "shows_threshold": effect_chart.shows_threshold(drawn, table.threshold),
        "rows": [
            (
                row.metric,
                level(c.a, row.unit),
                level(c.b, row.unit),
                change(c, table.threshold),
                limits(c),
                mean_change(c),
                "-" if c.p is None else p_value(c.p),
            )
            for row, c in found
        ],
    }


def _strip(table: ComparisonTable, row: ComparisonRow, name: str) -> Markup:
    """Return every run of one metric, a line a kernel; boots of a kernel lie a little above each other."""
    shown = [(n, s) for n, s in zip(table.names, row.series, strict=True) if s is not None and s.values]
    names = svg.room_for(svg.shortened(label, _MAX_NAME) for label, _ in shown)
    scale = svg.fitting(
        (v for _, s in shown for boot in s.boots for v in boot), names, svg.DRAWING_WIDTH - svg.RIGHT
    )
    parts: list[object] = []
    for at, (label, series) in enumerate(shown):
        top = svg.TOP + at * _STRIP
        words = svg.shortened(label, _MAX_NAME)
        parts += [
            svg.line(names, top + _STRIP / 2, svg.DRAWING_WIDTH - svg.RIGHT, top + _STRIP / 2, "grid"),
            element("g", element("title", label), svg.label(names - 10, top + 16, words, "row-name", "end")),
        ]
        boots = [boot for boot in series.boots if boot]
        for n, boot in enumerate(boots):
            y = top + _STRIP * (0.2 + 0.6 * (n + 0.5) / len(boots))
            parts.append(
                svg.dots(((scale(v), y) for v in boot if math.isfinite(v)), "old" if at == 0 else "new")
            )
    bottom = svg.TOP + _STRIP * len(shown)
    unit = f"{row.metric} in {row.unit}" if row.unit else row.metric
    says = f"{len(shown)} kernels"
    return svg.drawing(name, unit, says, bottom + 44, *parts, *svg.bottom_axis(scale, bottom, unit))
