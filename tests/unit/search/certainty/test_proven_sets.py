"""What fresh boots prove of a commit and of the set that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bisector.model.records import Marked
from bisector.search.certainty.proven_sets import prove_suspect
from tests.support.searching import Seen, context_of, graph_of, linear

SLOW = (110.0, 110.1, 109.9)


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
        assert found is None or found.parents == (0,)
        return None if found is None else (found.commits, found.without)

    two, both = {4: 6, 0: 6}, {4: 8, 0: 8, 5: 8, 6: 8}
    assert proven(two, {4}) == ((1, 2, 3, 4), False)
    assert proven({**two, 6: 6}, {4}) == ((3, 4), False)
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
