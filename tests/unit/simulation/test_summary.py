"""Summaries: their sums, their schema and the interval of a share."""

import json
from pathlib import Path

from bisector.simulation.batch import simulate
from bisector.simulation.summary import Report, share
from tests.support.searching import CENTRE


def test_the_report_matches_its_published_schema(tmp_path: Path) -> None:
    summary = simulate(CENTRE, 2, 1)
    report = Report(seed=1, scenario=CENTRE.describe(), **summary.model_dump())
    data = json.loads(report.model_dump_json())
    schema = Report.model_json_schema(mode="serialization")
    assert set(schema["required"]) <= set(data)
    parts = ("correct", "wrong", "inconclusive", "not_reproduced", "incomplete", "spread", "fixed")
    assert sum(data[p] for p in parts) + data["sets"]["count"] == data["trials"] == 2


def test_exact_binomial_interval() -> None:
    # Clopper-Pearson for 8 of 10, as in every table of it
    s = share(8, 10)
    assert (round(s.low, 4), round(s.high, 4)) == (0.4439, 0.9748)
    assert share(0, 5).low == 0.0
    assert share(5, 5).high == 1.0
