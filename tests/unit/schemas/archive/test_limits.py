"""What an exported bisection may say beside its types; in archives: `test_exported.py`."""

from __future__ import annotations

import pytest

from bisector.model.decisions import Measure
from bisector.model.facts import MonitorResult
from bisector.model.records import Booted, Built, Irrelevant, Left, Ran, Record, SetAside, Weighed
from bisector.schemas.archive import limits

LAST = 253_402_214_400.0


@pytest.mark.parametrize(
    "event",
    [
        Ran("boot-001", 19_999, {"real": 1e100}, 1e9, LAST),
        Ran("boot-001", 0, {"index": -1.0, "at": 1e99}, 0.0, 0.0, guest_seconds=-5.0),
        Booted("boot-001", 1, "fake", True, 0.0, LAST, overhead=-0.1),
        Measure(1, 10_000, "search", "why", left=1e12),
        Measure(1, 1, "search", "why", left=None),
        Left("boot-001", monitors=(MonitorResult("a", seconds=1e9),)),
    ],
)
def test_numbers_that_perfbisect_writes_are_right(event: Record | Measure) -> None:
    assert limits.wrong_number(event) == ""


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        (SetAside("fake", "why", LAST + 1), "key 'at': must be a time: seconds since 1970"),
        (Built(1, True, -0.1), "key 'seconds': must be from 0 to 1,000,000,000 (got -0.1)"),
        (Ran("boot-001", 20_000, {}, 1.0, 1.0), "key 'index': must be from 0 to 19,999 (got 20000)"),
        (Irrelevant((1,), {}, 10**5000), "(got a number of more than 100 digits)"),
        (Weighed((1,), (1.0,), -1), "key 'named': must be from 0 to 1,000,000 (got -1)"),
        (Left("b", monitors=(MonitorResult("a", seconds=-1.0),)), "key 'monitors.0.seconds': must be from 0"),
    ],
)
def test_other_numbers_are_named(event: Record | Measure, wrong: str) -> None:
    assert wrong in limits.wrong_number(event)


def test_texts_are_cut_wherever_they_are_and_nothing_else_changes() -> None:
    long = "x" * 30_000
    short = f"{'x' * 4996} ..."
    given = {"a": [long, {"details": long, "b": long}], "c": [1, 2.5, None, True, "y"], long: "key"}
    details = f"{'x' * 19_996} ..."
    right = {"a": [short, {"details": details, "b": short}], "c": [1, 2.5, None, True, "y"], long: "key"}
    assert limits.with_short_texts(given) == right
