"""What `list` and `status` call the result of a search that has proven changes in either direction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.app.operations.bisection_values import list_row, status_values
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.stored_bisection import Stored, summary_of
from tests.support.report_material import demo

CHANGE = Interval(0.1, 0.1, 0.1)
LOSS = Finding((3,), CHANGE, 0.97, (2,), certified=True)
GAIN = Finding((4,), CHANGE, 0.97, (3,), certified=True, opposite=True)
GRAPH = CommitGraph(demo().graph.shas, demo().graph.parents, demo().graph.candidate, 0, 4)


@pytest.mark.parametrize(
    ("ending", "findings", "listed", "told"),
    [
        (Ending.CULPRIT, (LOSS,), "culprit 444444444444", "culprit proven: 444444444444"),
        (Ending.CULPRITS, (LOSS, GAIN), "culprits 444444444444", "culprit proven, and a gain: 444444444444"),
        (Ending.CULPRIT, (GAIN,), "a gain, no culprit", "a gain proven, no culprit: 555555555555"),
        (Ending.NOT_REPRODUCED, (), "not reproduced", "not reproduced"),
    ],
)
def test_the_result_names_culprits_and_no_gain_as_one(
    ending: Ending, findings: tuple[Finding, ...], listed: str, told: str
) -> None:
    end = Conclusion(ending, "", findings)
    row = list_row(summary_of(Stored("b-1", 0.0, "{}", "done", GRAPH, end), 0.0), "done")
    assert row["result"] == listed
    assert status_values(replace(demo(), conclusion=end))["result"].startswith(told)


def test_where_a_fix_was_looked_for_the_other_direction_is_a_loss() -> None:
    end = Conclusion(Ending.FIX, "", (GAIN,))
    assert list_row(summary_of(Stored("b-1", 0.0, "{}", "done", GRAPH, end), 0.0), "done")["result"] == (
        "a loss, no fix"
    )
