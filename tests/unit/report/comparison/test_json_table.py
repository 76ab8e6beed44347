"""The JSON of a comparison: its keys stay, and it holds no NaN and no infinity."""

from __future__ import annotations

import json

from bisector.report.comparison import json_table
from bisector.stats.comparison_table import build
from tests.support.samples import sample_set, two_kernels


def test_keys_and_numbers() -> None:
    found = json.loads(json_table.render(two_kernels()))
    assert list(found) == [
        *("schema", "alpha", "threshold", "same_kernel", "columns", "testbeds", "sentences", "warnings")
    ]
    (testbed,) = found["testbeds"]
    assert (testbed["testbed"], testbed["sizes"][1]) == ("amd", {"text": 110, "data": 20, "rodata": 7})
    real = testbed["metrics"][0]
    assert real["values"] == [[[10.0, 10.1, 9.9, 10.0]], [[12.0, 12.1, 11.9, 12.0]]]
    (comparison,) = real["comparisons"]
    assert list(comparison) == [
        *("name", "unit", "better", "a", "b", "effect", "mean", "plain", "p", "method", "units", "verdict"),
        *("significant", "word", "outliers", "warnings"),
    ]
    assert comparison["units"] == [4, 4]


def test_what_is_infinite_or_not_measured_is_null() -> None:
    table = build([[sample_set("a", real=(1.0,), user=(1.0,))], [sample_set("b", real=(2.0,))]])
    text = json_table.render(table)
    assert "Infinity" not in text
    assert "NaN" not in text
    real, user = json.loads(text)["testbeds"][0]["metrics"]
    assert real["comparisons"][0]["effect"]["high"] is None
    assert (user["cells"][1], user["comparisons"], user["missing"]) == (None, [None], ["", "not measured"])
