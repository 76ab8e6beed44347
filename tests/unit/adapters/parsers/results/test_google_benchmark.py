"""What Google Benchmark prints. The entries are those that version 1.9.5 wrote, with shorter numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.parsers.results import result_format
from bisector.errors import RequestError
from bisector.stats.samples import SampleSet

ONE: dict[str, Any] = {
    "name": "sum/10000",
    "family_index": 1,
    "per_family_instance_index": 0,
    "run_name": "sum/10000",
    "run_type": "iteration",
    "repetitions": 2,
    "repetition_index": 0,
    "threads": 1,
    "iterations": 83,
    "real_time": 0.7119,
    "cpu_time": 0.3261,
    "time_unit": "ms",
    "bytes_per_second": 24535.3,
    "items": 5.0,
}
OTHER = {
    **ONE,
    "repetition_index": 1,
    "real_time": 0.6939,
    "cpu_time": 0.3381,
    "bytes_per_second": 23675.9,
    "items": 6.0,
    "iterations": 84,
    "label": "64 kB",
    "skipped": False,
}
MEAN = {
    **ONE,
    "name": "sum/10000_mean",
    "run_type": "aggregate",
    "aggregate_name": "mean",
    "real_time": 0.7029,
}
BROKEN = {
    **{key: value for key, value in ONE.items() if key not in ("bytes_per_second", "items")},
    "name": "broken",
    "run_name": "broken",
    "family_index": 2,
    "error_occurred": True,
    "error_message": "no such device",
    "real_time": 0.0,
    "cpu_time": 0.0,
}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_results(*results: dict[str, Any]) -> SampleSet:
        path = tmp_path / "g.json"
        path.write_text(
            json.dumps({"context": {"library_version": "1.9.5"}, "benchmarks": results}, indent=2)
        )
        (found,) = result_format.read(str(path))
        return found

    return read_results


def test_each_repetition_is_a_run_and_their_means_are_none(read: Any) -> None:
    """With the counters of the program itself, whose direction nobody tells."""
    found = read(ONE, OTHER, MEAN)
    assert found.name == "g"
    assert {name: (one.boots, one.unit, one.better) for name, one in found.series.items()} == {
        "sum/10000.real_time": (((0.7119, 0.6939),), "ms", "lower"),
        "sum/10000.cpu_time": (((0.3261, 0.3381),), "ms", "lower"),
        "sum/10000.bytes_per_second": (((24535.3, 23675.9),), "B/s", "higher"),
        "sum/10000.items": (((5.0, 6.0),), "", None),
    }


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, "no such device"),
        ({"error_occurred": False, "error_message": "", "skip_message": "not here"}, "not here"),
    ],
)
def test_a_benchmark_that_did_not_run_has_no_time(read: Any, told: dict[str, Any], why: str) -> None:
    found = read(ONE, {**BROKEN, **told})
    assert "broken.real_time" not in found.series
    assert (
        set(found.missing) == {"broken.real_time", "broken.cpu_time"}
        and why in found.missing["broken.cpu_time"]
    )


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ((MEAN,), "no repetition"),
        (({key: value for key, value in ONE.items() if key != "run_type"},), "not told apart"),
        ((ONE, {**ONE, "family_index": 2}), "two benchmarks 'sum/10000'"),
        ((ONE, {**OTHER, "time_unit": "us"}), "in ms and in us"),
        (({**ONE, "real_time": "fast"},), "a number was expected"),
        (("x",), "an object was expected"),
        ((), "no repetition"),
    ],
)
def test_what_cannot_be_compared_is_refused(read: Any, results: tuple[Any, ...], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        read(*results)
