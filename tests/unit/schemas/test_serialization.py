"""Stored records and decisions: what cannot be read is told in our words, with the key."""

from __future__ import annotations

from typing import Any

import pytest

from bisector.errors import InfrastructureError
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.records import Built
from bisector.schemas.serialization import conclusion_from, decision_from, record_from, to_json

BUILT = to_json(Built(1, True, 60.0, binary="a"))
MEASURE = to_json(Measure(1, 2, "search", "why"))


def test_records_and_decisions_are_read_back() -> None:
    assert record_from(BUILT) == Built(1, True, 60.0, binary="a")
    assert decision_from(MEASURE) == Measure(1, 2, "search", "why")
    ended = Conclusion(Ending.INCONCLUSIVE, "no time left")
    assert conclusion_from(to_json(ended)) == ended


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({"commit": 1}, "there is no such type"),
    "another type": (BUILT | {"type": "Demolished"}, "there is no such type"),
    "a word for a number": (BUILT | {"seconds": "long"}, "seconds: must be a number (got 'long')"),
    "a key missing": ({"type": "Built", "ok": True, "seconds": 1.0}, "commit: is missing"),
    "a decision": (MEASURE, "it is a decision where a record was expected"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_record(name: str) -> None:
    data, words = WRONG[name]
    with pytest.raises(InfrastructureError, match="cannot be read") as caught:
        record_from(data)
    assert caught.value.details == words


def test_what_is_no_decision_and_no_conclusion() -> None:
    with pytest.raises(InfrastructureError) as caught:
        decision_from(BUILT)
    assert caught.value.details == "it is a record where a decision was expected"
    with pytest.raises(InfrastructureError) as caught:
        conclusion_from(MEASURE)
    assert caught.value.details == "it is not a conclusion"
