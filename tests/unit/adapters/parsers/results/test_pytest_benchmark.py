"""What pytest-benchmark writes. The entry is one that version 5.3.1 wrote, with shorter numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.parsers.results import result_format
from bisector.errors import RequestError
from bisector.stats.samples import SampleSet

STATS: dict[str, Any] = {
    "min": 2.75e-05,
    "mean": 2.868e-05,
    "stddev": 1.247e-06,
    "rounds": 5,
    "data": [2.804e-05, 3.075e-05, 2.880e-05, 2.750e-05, 2.831e-05],
    "iterations": 2,
}
ONE: dict[str, Any] = {
    "group": None,
    "name": "test_sum",
    "fullname": "test_b.py::test_sum",
    "params": None,
    "extra_info": {},
    "stats": STATS,
}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_results(*results: dict[str, Any]) -> SampleSet:
        path = tmp_path / "p.json"
        path.write_text(json.dumps({"machine_info": {}, "benchmarks": results, "version": "5.3.1"}))
        (found,) = result_format.read(str(path))
        return found

    return read_results


def test_each_round_is_a_run(read: Any) -> None:
    found = read(ONE, {**ONE, "fullname": "test_c.py::test_sum"})
    assert set(found.series) == {"test_b.py::test_sum", "test_c.py::test_sum"}
    series = found.series["test_b.py::test_sum"]
    assert (series.boots, series.unit, series.better) == ((tuple(STATS["data"]),), "s", "lower")


@pytest.mark.parametrize(
    ("results", "why"),
    [
        (({**ONE, "stats": {key: value for key, value in STATS.items() if key != "data"}},), "no times"),
        (({**ONE, "stats": {**STATS, "data": [1.0, None]}},), "a number was expected"),
        (({**ONE, "stats": None},), "an object was expected"),
        ((ONE, ONE), "is there twice"),
        ((), "no benchmark"),
    ],
)
def test_what_cannot_be_compared_is_refused(read: Any, results: tuple[Any, ...], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        read(*results)
