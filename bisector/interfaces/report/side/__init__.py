"""Kernels side by side, in the forms that kernel people read: `render(sheet, form)`."""

from __future__ import annotations

import importlib

from bisector.core.sheet import Sheet

FORMS = ("people", "mmtests", "perf-stat", "robot", "runs", "json")


def render(sheet: Sheet, form: str = "people") -> str:
    """Return the comparison as text that ends with a newline. form: one of FORMS."""
    module = {"json": "data"}.get(form, form.replace("-", "_"))
    text: str = importlib.import_module(f"{__name__}.{module}").render(sheet)
    return text
