"""What fresh boots prove of a commit and of the set that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.records import Marked
from bisector.search.certainty.proven_sets import prove_suspect, suspects_to_judge
from bisector.search.confirmation import Proof
from tests.support.searching import Seen, context_of, goal, graph_of, linear, make_evidence

FAST, SLOW, SLOWEST = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9), (121.0, 121.1, 120.9)


def proof(*commits: int, effect: float = 0.0953) -> Proof:
    """Return the proof of a change, of a tenth."""
    found = make_evidence(10.0, -10.0, 0.09, effect, 0.1, 1.0, 1.0)
    return Proof(commits, commits[-1], (0,), replace(found, sd=0.002), 0.03)


def test_fresh_boots_of_a_branch_that_left_amid_a_set_split_it() -> None:
    """4 is compared with 0; 1, 2, 3 cannot be tested. 5 leaves the line after 1, 6 after 2; 7 merges them."""
    ends = [Seen(0, purpose="verify"), Seen(7, SLOW, "verify")] * 2

    def proven(
        boots: dict[int, int],
        slow: set[int],
        lost: int = -1,
        level_of_6: Callable[[int], float] = lambda boot: 0.0,
        left_after: tuple[int, int] = (1, 2),
        then: Sequence[Seen] = (),
        level: tuple[float, ...] = SLOW,
        layouts: int = 2,
    ) -> tuple[tuple[int, ...], bool] | None:
        """Prove 4 with so many fresh boots of each commit, of which some are slow.

        left_after: where 5 and 6 leave the line; then: later boots.
        """
        parents = ((), (0,), (1,), (2,), (3,), *((after,) for after in left_after), (4, 5, 6))
        graph = graph_of(parents, untestable=dict.fromkeys((1, 2, 3), "skipped"))
        seen = [
            Seen(
                c,
                tuple(x + level_of_6(k) * (c == 6) for x in (level if c in slow else (100.0, 100.1, 99.9))),
                "certify",
                k % layouts,
            )
            for k in range(max(boots.values()))
            for c, count in boots.items()
            if k < count
        ]
        marks = [Marked(lost, "skip", "")] if lost >= 0 else []
        context, cache = context_of(graph, [*ends, *seen, *then], records=marks)
        found = prove_suspect(context, cache, 4, (), 0.1)
        assert found is None or abs(found.evidence.estimate) == pytest.approx(0.1, rel=0.1)
        compared.append(() if found is None else found.parents)
        return None if found is None else (found.commits, found.without)

    compared: list[tuple[int, ...]] = []
    two, both = {4: 6, 0: 6}, {4: 8, 0: 8, 5: 8, 6: 8}
    assert proven(two, {4}) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 6}, {4}) == ((3, 4), False)
    assert compared == [(0,), (6,)], "the effect is that of the comparison with the least of the set between"
    assert proven({**two, 6: 8}, {4, 6}) == ((1, 2, 4), True)
    faster = proven({4: 8, 0: 8, 6: 8}, {4, 6}, level=(90.0, 90.1, 89.9), layouts=6)
    assert faster == ((1, 2, 4), True)
    assert proven(both, {4}) == ((3, 4), False)
    assert proven(both, {4, 6}) == ((2, 4), True)
    assert proven(both, {4, 5, 6}) == ((1, 4), True)
    # 5 has a change of its own, or 1 has one that 2 takes back.
    assert proven({4: 8, 0: 8, 6: 8, 5: 8}, {4, 5}) == ((1, 2, 3, 4), False)
    # 6 may have: the more it differs from 4, the more so.
    assert proven({**two, 6: 8}, {4}, level_of_6=lambda boot: 12.0) == ((1, 2, 4), True)
    assert proven({**two, 6: 8}, {4}, level_of_6=lambda boot: 13.5) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 8}, {4}, level_of_6=lambda boot: 6.0) == ((1, 2, 3, 4), False)
    assert proven({**two, 5: 8}, {4, 5}, left_after=(3, 1)) == ((1, 2, 3, 4), True)
    assert proven({**two, 6: 8}, {4}, level_of_6=lambda boot: 20.0) == ((1, 2, 4), True)  # and 6 here
    assert proven(both, {4}, level_of_6=lambda boot: 9.0 * (boot % 4 < 2)) is None  # not known of 6
    # Too few boots of the branch: they are waited for, unless it cannot be tested any more, or for ever.
    assert proven({**two, 6: 1}, {4}) is None
    assert proven({**two, 6: 1}, {4}, lost=6) == ((1, 2, 3, 4), False)
    assert proven({4: 16, 0: 16, 6: 1}, {4}) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 6}, {4}, lost=6) == ((3, 4), False)
    assert proven({**two, 5: 6, 6: 1}, {4}, left_after=(3, 1)) == ((4,), False)  # 6 can tell no more
    of_6 = [Seen(6, purpose="certify", layout=k % 2) for k in range(8)]
    assert proven(two, {4}, then=of_6) == ((3, 4), False)
    # What the search measures later takes nothing back.
    assert proven(two, {4}, then=[*of_6, *[Seen(5, SLOW)] * 8]) == ((3, 4), False)


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
    context, _ = context_of(OLDER, [Seen(c, FAST, "certify") for c in (4, 0, 5, 2)])
    assert suspects_to_judge(context) == [5, 2, 4]  # good is no candidate


def claimed(
    graph: CommitGraph,
    after: int,
    levels: Mapping[int, tuple[float, ...]],
    *proofs: Proof,
    boots: int = 6,
    exact: bool = False,
    scatter: float = 0.0,
    known: Sequence[Seen] = (),
) -> tuple[int, ...] | None:
    """Return what so many fresh boots of some commits prove of one, which scatters from boot to boot.

    known: what the search had measured before.
    """
    ends = [Seen(0, purpose="verify"), Seen(graph.bad, SLOWEST, "verify")] * 2
    fresh = [
        Seen(c, tuple(x + scatter * (k % 4 < 2) * (c == after) for x in values), "certify", k % 2)
        for k in range(boots)
        for c, values in levels.items()
    ]
    wanted = goal(clock="instructions") if exact else goal()
    context, cache = context_of(graph, [*ends, *known, *fresh], wanted=wanted)
    found = prove_suspect(context, cache, after, proofs, 0.1)
    return None if found is None else found.commits


OLDER = CommitGraph(
    tuple(f"{i:040x}" for i in range(6)),
    ((), (), (0,), (1,), (2, 3), (4,)),
    (False, False, *[True] * 4),
    good=0,
    bad=5,
)
"""1 is older than good, 0. 3 stands on 1, 4 merges 3 and 2, 5 stands on 4."""
MERGE = graph_of(((), (0,), (1,), (1,), (2, 3), (4,)))
"""2 and 3 stand on 1, 4 merges them. 5 is bad."""


def test_what_others_explain_of_a_merge_is_not_claimed_again() -> None:
    both = {2: SLOW, 3: SLOW, 4: SLOWEST}
    assert claimed(MERGE, 4, both) == (4,)  # the loss of 1 may be what 2 and 3 have
    assert claimed(MERGE, 4, both, proof(1)) == (4,)
    assert claimed(MERGE, 4, both, proof(2)) == (3,)  # 3 and 4 differ from 2; 3 was slow already
    assert claimed(MERGE, 4, both, proof(2), proof(3)) == ()
    assert claimed(MERGE, 4, both, proof(1, 2)) == (3, 4)  # 3, or 4 where it is 1
    assert claimed(MERGE, 4, both, proof(3), boots=1) is None
    one = {2: FAST, 3: SLOW, 4: SLOWEST}
    assert claimed(MERGE, 4, one, proof(3)) == (4,)
    assert claimed(MERGE, 4, {**one, 4: SLOW}, proof(3)) is None  # nor is there a change of its own
    # Boots that scatter are waited for: the change may be its own after all.
    assert claimed(MERGE, 4, both, proof(2), scatter=9.0, boots=10) is None
    assert claimed(MERGE, 4, both, proof(2), scatter=9.0, boots=16) == (3, 4)  # but not for ever


def test_a_little_that_is_left_of_a_merge_is_nothing_to_name() -> None:
    exact = {2: (110.0, 110.0), 3: (110.0, 110.0), 4: (124.0, 124.0)}
    assert claimed(MERGE, 4, exact, proof(2), proof(3), exact=True) == ()
    assert claimed(MERGE, 4, {**exact, 4: (135.0, 135.0)}, proof(2), proof(3), exact=True) == (4,)
    assert claimed(MERGE, 4, {**exact, 4: (112.0, 112.0)}, exact=True) == (4,)  # but a small change is told
    more = {**exact, 3: (121.5, 121.5)}
    assert claimed(MERGE, 4, more, proof(3, effect=0.12), exact=True) == ()  # 2% by 2, or by 4


def test_of_what_a_merge_holds_the_likeliest_commits_are_named() -> None:
    """2 stands on 1, and 3 and 4; 5 merges 2 and 4."""
    graph = graph_of(((), (0,), (1,), (1,), (3,), (2, 4), (5,)))
    levels = {2: SLOW, 3: FAST, 4: SLOW, 5: SLOWEST}
    assert claimed(graph, 5, levels, proof(2)) == (4,)  # not 3


def test_a_merge_that_is_compared_with_one_of_its_parents_shows_what_the_others_bring() -> None:
    """1 is older than good, 3 stands on it, and 4 merges 3 and 2."""
    assert claimed(OLDER, 4, {2: FAST, 4: SLOW}) == (4,)
    assert claimed(OLDER, 4, {2: FAST, 4: SLOW}, proof(3)) == ()
    assert claimed(OLDER, 4, {2: FAST, 4: SLOWEST}, proof(3)) == (4,)


def test_what_a_branch_more_likely_brings_that_a_merge_was_not_compared_with_is_not_claimed_of_it() -> None:
    levels = {2: FAST, 4: SLOW}
    assert claimed(OLDER, 4, levels, known=[Seen(1), Seen(3)] * 2) == (4,)
    assert claimed(OLDER, 4, levels, known=[Seen(1), Seen(3, SLOW)] * 2) == ()
    assert claimed(OLDER, 4, {**levels, 3: SLOW}, known=[Seen(1), Seen(3, SLOW)] * 2) == ()
    assert claimed(OLDER, 4, levels, known=[Seen(1, SLOW), Seen(3, SLOW)] * 2) == (4,)  # an offset of both


def test_a_proof_that_shares_commits_with_a_set_explains_nothing_of_it() -> None:
    """2 and 3 stand on 1, which cannot be tested: what is proven of 1 and 2 may be all that 3 shows."""
    graph = graph_of(((), (0,), (1,), (1,), (2, 3), (4,)), untestable={1: "skipped"})
    assert claimed(graph, 3, {0: FAST, 3: SLOW}, proof(1, 2)) == (1, 3)
