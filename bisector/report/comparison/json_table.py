"""The comparison as one JSON object.

Keys: schema, alpha, threshold, same_kernel, columns, testbeds (each: testbed, sizes, metrics; a metric: name,
unit, better, cells, values, comparisons, missing), sentences, warnings. Effects are relative changes of the
number (0.35: it rises by 35%). Infinite and unknown numbers are null.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from bisector.model.printable import finite, printable_json
from bisector.stats.comparison_result import Comparison
from bisector.stats.comparison_table import ComparisonRow, ComparisonTable, TestbedTable

SCHEMA_VERSION = 1


def render(table: ComparisonTable) -> str:
    """Return the JSON text."""
    return printable_json(value(table)) + "\n"


def value(table: ComparisonTable) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    found = {
        "schema": SCHEMA_VERSION,
        "alpha": table.alpha,
        "threshold": table.threshold,
        "same_kernel": table.same,
        "columns": list(table.names),
        "testbeds": [_testbed(t) for t in table.testbeds],
        "sentences": list(table.sentences),
        "warnings": list(table.warnings),
    }
    clean: dict[str, Any] = finite(found)
    return clean


def _testbed(testbed: TestbedTable) -> dict[str, Any]:
    return {
        "testbed": testbed.name,
        "sizes": [dict(s.sizes) for s in testbed.sets],
        "metrics": [_row(r) for r in testbed.rows],
    }


def _row(row: ComparisonRow) -> dict[str, Any]:
    return {
        "name": row.metric,
        "unit": row.unit,
        "better": row.better,
        "cells": [None if c is None else dataclasses.asdict(c) for c in row.cells],
        "values": [None if s is None else [list(b) for b in s.boots] for s in row.series],
        "comparisons": [None if c is None else _comparison(c) for c in row.comparisons],
        "missing": list(row.why),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    """Return the fields; the number of groups has the key 'units', as in the first version of this form."""
    fields = dataclasses.asdict(comparison)
    return {"units" if key == "group_counts" else key: item for key, item in fields.items()}
