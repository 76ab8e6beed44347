"""One run's metrics from the files that it left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.parsers.run_files import values
from bisector.adapters.parsers.workload_output import OutputError
from bisector.ports import MetricSpec
from tests.support.result_samples import written


def test_metrics_of_a_run_are_means_of_what_it_repeated(tmp_path: Path) -> None:
    place = Path(written(tmp_path, '{"metrics": {"a": {"values": [[1, 2], [6]], "unit": "s"}, "b": [4]}}'))
    wanted = [MetricSpec("time", "s", "a"), MetricSpec("b", "MB/s"), MetricSpec("c", "s", optional=True)]
    assert values(place, wanted) == {"time": 3.0, "b": 4.0}


def test_a_ratio_is_computed_and_not_looked_for(tmp_path: Path) -> None:
    ratio = MetricSpec("ipc", "1", ratio=("instructions", "cycles"))
    counted = [MetricSpec("instructions", "1", "inst"), MetricSpec("cycles", "1"), ratio]
    place = Path(written(tmp_path, '{"inst": [6, 10], "cycles": [4]}'))
    assert values(place, counted) == {"instructions": 8.0, "cycles": 4.0, "ipc": 2.0}


@pytest.mark.parametrize(
    ("text", "metric", "said"),
    [
        ('{"ops": [1]}', MetricSpec("op", "s"), r"no metric 'op'; did you mean 'ops'\? \(there are: ops\)"),
        ('{"ops": [1', MetricSpec("ops", "s"), "it ends in the middle"),
        ('{"metrics": {"a": {"values": [1], "unit": "ms"}}}', MetricSpec("a", "s"), "is in 'ms'"),
        ('{"a": [NaN]}', MetricSpec("a", "s"), "no finite number"),
        (
            '{"metrics": {"a": [1]}, "missing": {"b": "not counted"}}',
            MetricSpec("b", "s"),
            "'b': not counted",
        ),
        ('{"sets": [{"metrics": {"a": [1]}}, {"metrics": {"a": [1]}}]}', MetricSpec("a", "s"), "2 systems"),
        ('{"a": [[]]}', MetricSpec("a", "s"), "'a' has no value in the results"),
        (json.dumps({f"m{i}": [i] for i in range(30)}), MetricSpec("x", "s"), "and 18 more"),
        (json.dumps({f"m{i}": [i] for i in range(12)}), MetricSpec("x", "s"), r"m9\)$"),
    ],
)
def test_metrics_that_cannot_be_had_from_a_runs_files(
    text: str, metric: MetricSpec, said: str, tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match=said):
        values(Path(written(tmp_path, text)), [metric])
