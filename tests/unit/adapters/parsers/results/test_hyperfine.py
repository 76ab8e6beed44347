"""What hyperfine exports. The document is one that hyperfine 1.15.0 wrote, shortened to three runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.parsers.results import result_format
from bisector.errors import RequestError
from bisector.stats.samples import SampleSet

FIRST: dict[str, Any] = {
    "command": "sleep 0.01",
    "mean": 0.01676687266666667,
    "stddev": 0.0028521577329268335,
    "median": 0.015950731000000003,
    "user": 0.001197,
    "system": 0.0,
    "min": 0.014411750000000001,
    "max": 0.019938137,
    "times": [0.019938137, 0.015950731000000003, 0.014411750000000001],
    "exit_codes": [0, 0, 0],
    "parameters": {"n": "1"},
}
SECOND = {**FIRST, "command": "sleep 0.02", "times": [0.02560109, 0.021455847, 0.021414866]}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_results(*results: dict[str, Any]) -> SampleSet:
        path = tmp_path / "h.json"
        path.write_text(json.dumps({"results": results}, indent=2))
        (found,) = result_format.read(str(path))
        return found

    return read_results


def test_the_runs_of_one_command(read: Any) -> None:
    found = read(FIRST)
    assert found.name == "h"
    (series,) = found.series.values()
    assert set(found.series) == {"time"}
    assert (series.boots, series.unit, series.better) == ((tuple(FIRST["times"]),), "s", "lower")


def test_several_commands_are_told_apart_by_their_names(read: Any) -> None:
    assert set(read(FIRST, SECOND).series) == {"sleep 0.01", "sleep 0.02"}
    with pytest.raises(RequestError, match="is there twice"):
        read(FIRST, FIRST)


def test_runs_that_failed_are_told(read: Any) -> None:
    assert read({**FIRST, "exit_codes": [0, 1, 1]}).notes == (
        "'sleep 0.01' ended with code 1 in 2 of 3 runs",
    )


@pytest.mark.parametrize("times", [None, [], ["x"], [float("nan")], [True]])
def test_without_times_of_runs_nothing_is_compared(read: Any, times: object) -> None:
    with pytest.raises(RequestError, match=r"h\.json"):
        read({**FIRST, "times": times})
