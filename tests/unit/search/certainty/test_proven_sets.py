"""What fresh boots prove of a commit and of the set that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bisector.model.goal import TestbedClock
from bisector.model.records import Marked
from bisector.search.certainty.proven_sets import prove_suspect, suspects_to_judge
from bisector.search.confirmation import Proof
from tests.support.searching import Seen, context_of, goal, graph_of, linear, make_evidence

FAST, SLOW, SLOWEST = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9), (121.0, 121.1, 120.9)


def proof(*commits: int) -> Proof:
    """Return the proof of a change of a tenth."""
    found = make_evidence(10.0, -10.0, 0.09, 0.0953, 0.1, 1.0, 1.0)
    return Proof(commits, commits[-1], (0,), replace(found, sd=0.002), 0.03)


def test_fresh_boots_of_a_branch_that_left_amid_a_set_split_it() -> None:
    """4 is compared with 0; 1, 2, 3 cannot be tested. 5 leaves the line after 1, 6 after 2; 7 merges them."""
    parents = ((), (0,), (1,), (2,), (3,), (1,), (2,), (4, 5, 6))
    graph = graph_of(parents, untestable=dict.fromkeys((1, 2, 3), "skipped"))
    ends = [Seen(0, purpose="verify"), Seen(7, SLOW, "verify")] * 2

    def proven(
        boots: dict[int, int],
        slow: set[int],
        lost: int = -1,
        level_of_6: Callable[[int], float] = lambda boot: 0.0,
    ) -> tuple[tuple[int, ...], bool] | None:
        """Prove 4 with so many fresh boots of each commit, of which some are slow."""
        seen = [
            Seen(
                c,
                tuple(x + level_of_6(k) * (c == 6) for x in (SLOW if c in slow else (100.0, 100.1, 99.9))),
                "certify",
                k % 2,
            )
            for k in range(max(boots.values()))
            for c, count in boots.items()
            if k < count
        ]
        marks = [Marked(lost, "skip", "")] if lost >= 0 else []
        context, cache = context_of(graph, [*ends, *seen], records=marks)
        found = prove_suspect(context, cache, 4, (), 0.1)
        assert found is None or found.evidence.estimate == pytest.approx(0.1, rel=0.1)
        compared.append(() if found is None else found.parents)
        return None if found is None else (found.commits, found.without)

    compared: list[tuple[int, ...]] = []
    two, both = {4: 6, 0: 6}, {4: 8, 0: 8, 5: 8, 6: 8}
    assert proven(two, {4}) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 6}, {4}) == ((3, 4), False)
    assert proven({**two, 6: 8}, {4, 6}) == ((1, 2, 4), True)
    assert proven(both, {4}) == ((3, 4), False)
    assert proven(both, {4, 6}) == ((2, 4), True)
    assert proven(both, {4, 5, 6}) == ((1, 4), True)
    # 5 has a change of its own, or 1 has one that 2 takes back.
    assert proven({4: 8, 0: 8, 6: 8, 5: 8}, {4, 5}) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 8}, {4}, level_of_6=lambda boot: 20.0) == ((1, 2, 4), True)  # and 6 here
    assert proven(both, {4}, level_of_6=lambda boot: 9.0 * (boot % 4 < 2)) is None  # not known of 6
    # Too few boots of the branch: they are waited for, unless it cannot be tested any more, or for ever.
    assert proven({**two, 6: 1}, {4}) is None
    assert proven({**two, 6: 1}, {4}, lost=6) == ((1, 2, 3, 4), False)
    assert proven({4: 16, 0: 16, 6: 1}, {4}) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 6}, {4}, lost=6) == ((3, 4), False)
    # The effect is that of the comparison with the least of the set between: with a branch, where it is fast.
    assert compared == [
        *((0,), (6,), (0,), (6,), (5,), (0,), (0,), (0,), ()),
        *((), (0,), (0,), (6,)),
    ]


def test_what_fresh_boots_have_proven_stays_proven_when_the_parent_fails() -> None:
    ends = [Seen(0, purpose="verify"), Seen(8, SLOW, "verify")] * 2

    def proven(at: int, boots: int, *skipped: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Prove commit `at`; its parent has so many fresh boots, the one below it has many."""
        counts = {at: 6, at - 1: boots, at - 2: 6 if at > 1 else 0}
        seen = [
            Seen(c, SLOW if c == at else (100.0, 100.1, 99.9), "certify", k % 2)
            for k in range(6)
            for c, count in counts.items()
            if k < count
        ]
        marks = [Marked(c, "skip", "") for c in skipped]
        context, cache = context_of(linear(8), [*ends, *seen], records=marks)
        found = prove_suspect(context, cache, at, (), 0.1)
        return None if found is None else (found.commits, found.parents)

    assert proven(5, 6) == proven(5, 6, 4) == proven(5, 6, 5, 4) == ((5,), (4,))
    assert proven(5, 1) is None
    assert proven(5, 1, 4) == ((4, 5), (3,))
    assert proven(1, 6) == proven(1, 6, 0) == ((1,), (0,))


def test_merges_are_judged_after_the_others() -> None:
    """3 merges 1 and 2; 5 merges 3 and a branch that lacks part of good's history, which is left out."""
    graph = graph_of(((), (0,), (0,), (1, 2), (3,), (4,)))
    fresh = [Seen(c, FAST, "certify") for c in (3, 0, 5, 1)]
    context, _ = context_of(graph, fresh)
    assert suspects_to_judge(context) == [5, 1, 3]  # good is no candidate


def test_what_others_explain_of_a_merge_is_not_claimed_again() -> None:
    """2 and 3 stand on 1, 4 merges them. 5 is bad."""
    graph = graph_of(((), (0,), (1,), (1,), (2, 3), (4,)))
    ends = [Seen(0, purpose="verify"), Seen(5, SLOWEST, "verify")] * 2

    def claimed(
        levels: Mapping[int, tuple[float, ...]], *proofs: Proof, boots: int = 6, clock: TestbedClock = "wall"
    ) -> tuple[int, ...] | None:
        fresh = [Seen(c, x, "certify", k % 2) for k in range(boots) for c, x in levels.items()]
        context, cache = context_of(graph, [*ends, *fresh], wanted=goal(clock=clock))
        found = prove_suspect(context, cache, 4, proofs, 0.1)
        return None if found is None else found.commits

    both = {2: SLOW, 3: SLOW, 4: SLOWEST}
    assert claimed(both) == (4,)  # the loss of 1 may be what 2 and 3 have
    assert claimed(both, proof(1)) == (4,)
    assert claimed(both, proof(2)) == (3,)  # 3 and 4 differ from 2; 3 was slow already
    assert claimed(both, proof(2), proof(3)) == ()
    assert claimed(both, proof(1, 2)) == (3, 4)  # 3, or 4 where it is 1
    assert claimed(both, proof(3), boots=1) is None
    one = {2: FAST, 3: SLOW, 4: SLOWEST}
    assert claimed(one, proof(3)) == (4,)
    assert claimed({**one, 4: SLOW}, proof(3)) is None  # nor is there a change of its own
    # A little that is left, though the clock is exact, is nothing to name.
    exact = {2: (110.0, 110.0), 3: (110.0, 110.0), 4: (122.0, 122.0)}
    assert claimed(exact, proof(2), proof(3), clock="instructions") == ()
    assert claimed({**exact, 4: (135.0, 135.0)}, proof(2), proof(3), clock="instructions") == (4,)
