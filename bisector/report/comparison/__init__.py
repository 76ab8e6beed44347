"""Kernels side by side, in the forms that kernel engineers read: `render(table, form)`."""

from __future__ import annotations

import importlib

from bisector.stats.comparison_table import ComparisonTable

_MODULES = {
    "people": "table",
    "mmtests": "mmtests",
    "perf-stat": "perf_stat",
    "robot": "kernel_test_robot",
    "runs": "run_table",
    "json": "json_table",
}
FORMS = tuple(_MODULES)


def render(table: ComparisonTable, form: str = "people") -> str:
    """Return the comparison as text that ends with a newline. form: one of FORMS."""
    text: str = importlib.import_module(f"{__name__}.{_MODULES[form]}").render(table)
    return text
