"""How many units of work a run does: numbers and parameters, over all combinations that it executes."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from bisector.schemas.workload.work import Work


@pytest.mark.parametrize(
    ("count", "number"),
    [
        (20000, 20000),
        ("7", 7),
        ("{ios}", 500),
        ("{ios} + {logs} * 2", 514),
        ("{ios} * {logs} * {logs}", 24_500),
        ("{cpus}", None),
        ("{ios} * {none}", None),
        ("{ios} + {words}", None),
    ],
)
def test_the_number_is_told_where_there_is_one(count: object, number: int | None) -> None:
    parameters = {"ios": ("500",), "logs": ("7",), "cpus": ("4x",), "none": ("0",), "words": ("1 + 1",)}
    found = Work.model_validate({"unit": "I/O", "count": count}).told(parameters)
    assert found == (None if number is None else ("I/O", number))


def test_a_run_does_the_work_of_all_combinations() -> None:
    parameters = {"calls": ("100",), "threads": ("1", "2", "5"), "way": ("a", "b")}
    assert Work(unit="call", count="2 * {calls}").told(parameters) == ("call", 6 * 2 * 100)
    assert Work(unit="call", count="{threads} * {calls}").told(parameters) == ("call", 2 * 8 * 100)
    some = {**parameters, "threads": ("1", "2", "4x")}
    assert Work(unit="call", count="{calls}").told(some) is None, "with one CPU four threads, so no five"
    assert Work(unit="call", count="{calls}").told({**some, "threads": ("4x",)}) == ("call", 200)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "round trip"},
        {"unit": "round trip", "count": 0},
        {"unit": "round trip", "count": -1},
        {"unit": "round trip", "count": 1.5},
        {"unit": "round trip", "count": True},
        {"unit": "round trip", "count": "{a b}"},
        {"unit": "round trip", "count": "1 - 2"},
        {"unit": "round trip", "count": "2*3"},
        {"unit": "", "count": 1},
        {"unit": "a\nb", "count": 1},
    ],
)
def test_what_is_no_unit_of_work_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Work.model_validate(wrong)
