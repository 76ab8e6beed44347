"""Who calls the functions that grew, how often, and trees: with numbers that add up."""

from __future__ import annotations

import dataclasses

from bisector.linux.call_graph import callees, callers
from bisector.linux.exact_profile import ExactComparison, compare_exactly
from bisector.linux.profile import Profile, Symbol
from bisector.report.profiles import exact_calls, exact_table

LOCK, WRITE, READ = Symbol("lock", "kernel"), Symbol("write", "kernel"), Symbol("read", "kernel")


def side(name: str, write: float, read: float, calls: float) -> Profile:
    stacks = {(WRITE,): 10.0, (READ,): 10.0, (WRITE, LOCK): write, (READ, LOCK): read}
    own = {WRITE: 10.0, READ: 10.0, LOCK: write + read}
    called = {("lock", "write"): write, ("lock", "read"): read}
    return Profile(
        name, own, stacks=stacks, total=sum(own.values()), exact=True, calls={LOCK: calls}, callers=called
    )


def both(write: float, read: float) -> ExactComparison:
    return compare_exactly(side("a", 20, 60, 4), side("b", write, read, 9))


def test_a_function_that_grew_is_named_with_those_who_call_it_more() -> None:
    assert exact_calls.sentences(both(90, 60)) == ["lock (+70) is called from write (+70)."]
    assert exact_calls.sentences(both(50, 75)) == ["lock (+45) is called from write (+30), read (+15)."]
    assert exact_calls.sentences(both(10, 60)) == [], "it shrank"
    unfollowed = dataclasses.replace(side("a", 20, 60, 4), callers={})
    assert exact_calls.sentences(compare_exactly(unfollowed, side("b", 90, 60, 9))) == []


def test_calls_are_counted_beside_instructions() -> None:
    assert exact_calls.rows(both(90, 60), 5) == [("lock", "4", "9", "+5")]
    uncounted = dataclasses.replace(side("a", 20, 60, 4), calls={})
    assert exact_calls.rows(compare_exactly(uncounted, side("b", 90, 60, 9)), 5) == []


def test_trees_say_instructions_of_a_run() -> None:
    found = both(90, 60)
    trees = [
        (name, callers(found.a, found.b, name, 0), callees(found.a, found.b, name, 0))
        for name in ("lock", "x")
    ]
    said = exact_table.render(found, 2, trees).splitlines()
    assert "lock               80  150     +70" in said
    assert "  write            20   90     +70" in said
    assert "x: in no path of calls of either profile" in said
    assert "lock (+70) is called from write (+70)." in said


def test_machines_get_callers() -> None:
    (one, *_) = exact_table.as_json(both(90, 60))["functions"]
    assert one["calls"] == [4, 9]
    assert one["callers"][0] == {"name": "write", "counts": [20, 90], "change": 70}
