"""The comparison for machines, one JSON object.

Keys: schema, alpha, threshold, same_kernel, columns, testbeds (each: testbed, sizes, metrics; a metric: name,
unit, better, cells, comparisons, missing), sentences, warnings. Effects are relative changes of the number
(0.35: it rises by 35%); what is infinite or unknown is null.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from bisector.stats.comparison_table import Group, Row, Sheet

SCHEMA = 1


def render(sheet: Sheet) -> str:
    """Return the JSON text."""
    return json.dumps(value(sheet), indent=2, ensure_ascii=False) + "\n"


def value(sheet: Sheet) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    found = {
        "schema": SCHEMA,
        "alpha": sheet.alpha,
        "threshold": sheet.threshold,
        "same_kernel": sheet.same,
        "columns": list(sheet.names),
        "testbeds": [_group(g) for g in sheet.groups],
        "sentences": list(sheet.sentences),
        "warnings": list(sheet.warnings),
    }
    clean: dict[str, Any] = _finite(found)
    return clean


def _group(group: Group) -> dict[str, Any]:
    return {
        "testbed": group.testbed,
        "sizes": [dict(s.sizes) for s in group.sets],
        "metrics": [_row(r) for r in group.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "name": row.metric,
        "unit": row.unit,
        "better": row.better,
        "cells": [None if c is None else dataclasses.asdict(c) for c in row.cells],
        "values": [None if s is None else [list(b) for b in s.boots] for s in row.series],
        "comparisons": [None if c is None else dataclasses.asdict(c) for c in row.comparisons],
        "missing": list(row.why),
    }


def _finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
