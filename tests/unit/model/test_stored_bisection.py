"""What lists show is taken from the request and the conclusion."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.stored_bisection import MAX_CULPRITS, Stored, summary_of
from bisector.simulation.histories import linear

EFFECT = Interval(0.1, 0.2, 0.3)
STORED = Stored("one", 1.0, "{}", "done", linear(9))


@pytest.mark.parametrize(
    "request_text",
    [
        json.dumps({"request": {"workload": "w", "good": "a", "bad": "b"}}),
        json.dumps({"workload": "w", "good": "a", "bad": "b"}),
    ],
)
def test_an_accepted_request_and_a_plain_one_say_the_same(request_text: str) -> None:
    found = summary_of(replace(STORED, request=request_text), 2.0)
    assert (found.workload, found.good, found.bad, found.changed) == ("w", "a", "b", 2.0)


def test_a_command_is_called_as_it_was_accepted() -> None:
    said = json.dumps(
        {"request": {"workload": "", "run": "dd", "good": "a", "bad": "b"}, "workload": "run-dd"}
    )
    assert summary_of(replace(STORED, request=said), 2.0).workload == "run-dd"


@pytest.mark.parametrize("text", ["{", "[]", '{"request": 3}'])
def test_a_damaged_request_leaves_a_bisection_in_the_list(text: str) -> None:
    assert summary_of(replace(STORED, request=text), 2.0).workload is None


def test_small_changes_are_no_culprits_and_a_crowd_is_cut() -> None:
    findings = (Finding((1,), EFFECT, 0.9, small=True), Finding((2, 3, 4), EFFECT, 0.9))
    found = summary_of(replace(STORED, conclusion=Conclusion(Ending.CULPRIT_SET, "", findings)), 2.0)
    assert found.ending is Ending.CULPRIT_SET
    assert found.culprits == tuple(STORED.graph.shas[i] for i in (2, 3, 4))
    crowd = (Finding(tuple(range(1, 9)), EFFECT, 0.9),)
    found = summary_of(replace(STORED, conclusion=Conclusion(Ending.CULPRIT_SET, "", crowd)), 2.0)
    assert len(found.culprits) == MAX_CULPRITS
