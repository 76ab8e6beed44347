"""Kernels side by side, in the forms that kernel engineers read: `render(table, form)`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.stats.comparison_table import ComparisonTable

_MODULES = {
    "people": "table",
    "mmtests": "mmtests_form",
    "perf-stat": "perf_stat_forms",
    "robot": "kernel_test_robot",
    "runs": "run_table",
    "json": "json_table",
}
FORMS = tuple(_MODULES)


def render(table: ComparisonTable, form: str = "people", width: int | None = None) -> str:
    """Return the comparison as text that ends with a newline.

    form: one of FORMS. width: characters of a line of the form for people, None for any number; the other
    forms are those of other programs, whatever the terminal.
    """
    module = importlib.import_module(f"{__name__}.{_MODULES[form]}")
    text: str = module.render(table, width) if form == "people" else module.render(table)
    return text
