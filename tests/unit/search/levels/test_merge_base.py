"""Which end a merge base is like: only what boots prove counts, not which level is nearer by chance."""

from dataclasses import replace

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Measure
from bisector.model.goal import Goal
from bisector.model.state import fold
from bisector.search import endpoints
from bisector.search.endpoints import compare_ends
from bisector.search.levels.merge_base import end_like_base, next_trial
from bisector.search.planner import Planner
from bisector.search.sequential_test import Evidence
from tests.support.searching import Seen, context_of, goal, make_evidence, records_of

BASE, GOOD, BAD = 0, 1, 4
GRAPH = CommitGraph(
    tuple(f"{i:040x}" for i in range(5)),
    ((), (BASE,), (BASE,), (2,), (3,)),
    (False, False, True, True, True),
    GOOD,
    BAD,
    merge_bases=(BASE,),
)
EXACT = goal(clock="instructions")
CHANGED = make_evidence(9.0, -9.0, 0.15, 0.2, 0.25, 0.02, 1.0, ((0.0, 1.0),))
EQUAL = replace(CHANGED, log_e_change=-2.0, log_e_below=9.0, estimate=0.0, interval=lambda: (-0.01, 0.01))
OPEN = replace(CHANGED, log_e_change=1.0, log_e_below=0.0, interval=lambda: (-0.1, 0.3))


def boots(level: float, *, commit: int = BASE, count: int = 3, testbed: str = "t") -> list[Seen]:
    values = tuple(level * (1 + x) for x in (-0.001, 0.0, 0.001))
    return [Seen(commit, values, "verify", testbed=testbed)] * count


def like(visits: list[Seen], wanted: Goal | None = None) -> str | None:
    context, cache = context_of(GRAPH, visits, wanted=wanted)
    ends = compare_ends(context, cache)
    assert ends is not None
    return end_like_base(context, cache, BASE, ends)


ENDS = [*boots(100.0, commit=GOOD), *boots(120.0, commit=BAD)]
SCATTERING = [
    Seen(c, (y, y * 1.001, y * 0.999), "verify")
    for c, levels in ((GOOD, (95.0, 100.0, 105.0, 97.0)), (BAD, (115.0, 120.0, 125.0, 117.0)))
    for y in levels
]
UNLUCKY = [Seen(BASE, (y, y * 1.001, y * 0.999), "verify") for y in (104.0, 113.0, 116.0)]
"""Boots of a base that scatter as those of the ends: nearer to bad, but their order proves nothing."""


@pytest.mark.parametrize(
    ("level", "end"), [(95.0, "good"), (100.0, "good"), (109.0, "good"), (111.0, "bad"), (121.0, "bad")]
)
@pytest.mark.parametrize("wanted", [goal(), EXACT])
def test_a_merge_base_is_like_the_nearer_end(wanted: Goal, level: float, end: str) -> None:
    assert like([*ENDS, *boots(level)], wanted) == end


def test_nothing_is_known_before_the_base_has_its_fewest_boots() -> None:
    assert [like([*ENDS, *boots(120.0, count=n)]) for n in range(4)] == [None, None, None, "bad"]
    one_each = [*boots(100.0, commit=GOOD, count=1), *boots(120.0, commit=BAD, count=1)]
    assert [like([*one_each, *boots(120.0, count=n)], EXACT) for n in range(2)] == [None, "bad"]
    assert like([*ENDS, *boots(120.0, testbed="u")]) is None, "levels of two testbeds do not compare"


def test_a_base_that_is_nearer_to_bad_by_chance_is_compared_further() -> None:
    records = records_of([*SCATTERING, *UNLUCKY])
    trial = Planner().next(fold(GRAPH, goal(), records))
    assert isinstance(trial, Measure)
    assert trial.commit == BASE
    assert "test the merge base: it may itself be bad: boot 4 of the merge base" in trial.reason


@pytest.mark.parametrize(
    ("below", "above", "end"),
    [
        (CHANGED, EQUAL, "bad"),
        (replace(OPEN, estimate=0.19), CHANGED, None),
        (replace(EQUAL, estimate=0.11), CHANGED, None),
        (EQUAL, CHANGED, "good"),
        (EQUAL, OPEN, "good"),
        (replace(OPEN, estimate=0.01), CHANGED, "good"),
        (replace(OPEN, estimate=0.01), OPEN, None),
        (replace(OPEN, estimate=0.01), replace(CHANGED, estimate=-0.2), None),
        (replace(OPEN, estimate=0.01), replace(CHANGED, log_e_change=2.9), None),
        (replace(CHANGED, log_e_change=2.9), EQUAL, None),
        (None, CHANGED, None),
        (CHANGED, None, None),
    ],
)
def test_each_answer_has_its_proof(
    monkeypatch: pytest.MonkeyPatch, below: Evidence | None, above: Evidence | None, end: str | None
) -> None:
    monkeypatch.setattr(endpoints, "compare_two", lambda _, before, after: below if after == BASE else above)
    context, cache = context_of(GRAPH, [*ENDS, *boots(110.0)])
    assert end_like_base(context, cache, BASE, CHANGED) == end


def test_several_bases_share_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log 3.2 proves a change at 5%, and not at half of it, which asks for four boots of each side, too."""
    found = replace(CHANGED, log_e_change=3.2)
    monkeypatch.setattr(endpoints, "compare_two", lambda *_: found)
    answers = []
    for graph in (GRAPH, replace(GRAPH, merge_bases=(BASE, 2))):
        visits = [*ENDS, *boots(100.0, commit=GOOD, count=1), *boots(120.0, count=4)]
        context, cache = context_of(graph, visits)
        answers.append(end_like_base(context, cache, BASE, CHANGED))
    assert answers == ["bad", None]


def test_the_base_catches_up_with_the_ends_and_then_all_take_turns() -> None:
    def trial(visits: list[Seen], wanted: Goal | None = None) -> Measure:
        return next_trial(context_of(GRAPH, visits, wanted=wanted)[0], BASE, CHANGED)

    first = trial(ENDS)
    assert (first.commit, first.runs, first.purpose) == (BASE, 2, "verify")
    assert first.reason == "test the merge base: it may itself be bad: boot 1 of the merge base, 2 runs"
    order, visits = list[int](), [*ENDS]
    for _ in range(9):
        order.append(trial(visits).commit)
        visits += boots(100.0, commit=order[-1], count=1)
    assert order == [BASE, BASE, BASE, BAD, BASE, GOOD, GOOD, BASE, BAD]
