"""A testbed that fails again and again, over trials."""

from __future__ import annotations

import pytest

from bisector.engine.machines.recent_tries import RecentTries
from bisector.errors import FirmwareChanged, InfrastructureError, MachineInUse

LOST = InfrastructureError("no answer", details="ssh: no route", cure="look at it")


def told(tries: RecentTries, testbed: str, outcomes: str) -> list[InfrastructureError | None]:
    """Tell of tries, '.' for one that went well, 'F' for one that broke; return what came of the latter."""
    found = []
    for outcome in outcomes:
        if outcome == "F":
            found.append(tries.broke(testbed, LOST))
        else:
            tries.went_well(testbed)
    return found


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ("FF.FF.F", "5 of its last 7"),
        ("FFFFF", "5 of its last 5"),
        ("......F.F.F.F.F", "5 of its last 10"),
        ("F.F.F.F", ""),
        ("F.F.F.F...F", ""),  # the first one is no one of the last ten
    ],
)
def test_five_failures_in_the_last_ten_tries_are_too_many(outcomes: str, words: str) -> None:
    *earlier, last = told(RecentTries(), "box1", outcomes)
    assert earlier == [None] * len(earlier)
    assert (last is not None) == bool(words)
    if last is not None:
        assert last.message == f"the testbed 'box1' failed in {words} tries; the last time: no answer"
        assert (last.details, last.cure) == ("ssh: no route", "look at it")


def test_each_testbed_has_tries_of_its_own() -> None:
    tries = RecentTries()
    told(tries, "box1", "FFFF")
    assert told(tries, "box2", "F") == [None]


@pytest.mark.parametrize("error", [MachineInUse("in use"), FirmwareChanged("another BIOS")])
def test_a_machine_that_is_anothers_for_a_while_or_was_updated_has_not_failed(
    error: InfrastructureError,
) -> None:
    """Of one that failed before it would be told that it fails again and again, and it would be suspect."""
    tries = RecentTries()
    assert [tries.broke("box1", error) for _ in range(9)] == [None] * 9
    assert told(tries, "box1", "FFFF") == [None] * 4
