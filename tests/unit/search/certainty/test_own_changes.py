"""The own change of a merge: without what proven changes explain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.search.certainty.own_changes import Explained, compare_own_changes, explained_between
from bisector.search.confirmation import Proof
from tests.support.searching import Seen, context_of, graph_of, make_evidence

FAST, SLOW, SLOWEST = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9), (121.0, 121.1, 120.9)
GRAPH = graph_of(((), (0,), (1,), (1,), (2, 3)))
"""2 and 3 stand on 1; 4 merges them."""


def proof(*commits: int, effect: float = 0.1, sd: float = 0.01) -> Proof:
    found = make_evidence(10.0, -10.0, 0.08, effect, 0.12, 0.01, 1.0)
    return Proof(commits, commits[-1], (0,), replace(found, sd=sd), 0.03)


def test_what_is_explained_is_what_one_of_the_two_commits_holds_and_the_other_one_lacks() -> None:
    context, _ = context_of(GRAPH)

    def explained(parent: int, after: int, *proofs: Proof) -> tuple[float, ...] | None:
        found = explained_between(context, proofs, parent, after)
        if found is None:
            return None
        return tuple(round(x, 4) for x in (found.low, found.estimate, found.high, found.sd))

    assert explained(2, 4) is None
    assert explained(2, 4, proof(1), proof(2)) is None  # both hold them
    assert explained(2, 4, proof(3)) == (0.0804, 0.1, 0.1196, 0.01)  # 1.96 standard deviations
    assert explained(2, 4, proof(3), proof(1)) == explained(2, 4, proof(3))
    assert explained(2, 4, proof(3, effect=-0.1)) == (-0.1196, -0.1, -0.0804, 0.01)
    assert explained(3, 2, proof(3)) == (-0.1196, -0.1, -0.0804, 0.01)  # what only the other one holds
    assert explained(0, 4, proof(2), proof(3)) == (0.1608, 0.2, 0.2392, 0.0141)
    assert explained(3, 2, proof(2), proof(3)) == (-0.0392, 0.0, 0.0392, 0.0141)
    assert explained(2, 4, proof(1, 3)) == (0.0, 0.0, 0.1196, 0.0)  # all of it or nothing
    assert explained(2, 4, proof(1, 3, effect=-0.1)) == (-0.1196, 0.0, 0.0, 0.0)
    assert explained(3, 2, proof(2, 3)) == (-0.1196, 0.0, 0.1196, 0.0)


def test_they_explain_no_more_than_their_largest_value() -> None:
    found = Explained(0.08, 0.1, 0.12, 0.01)
    assert [found.nearest_to(x) for x in (0.0, 0.1, 0.3)] == [0.08, 0.1, 0.12]


def test_a_merge_is_compared_with_each_parent_without_what_others_explain() -> None:
    """4 differs from 2 by the loss of 3, and from 3 by that of 2."""
    ends = [Seen(0, FAST, "verify"), Seen(4, SLOWEST, "verify")] * 2
    levels = {2: SLOW, 3: SLOW, 4: SLOWEST}
    fresh = [Seen(c, x, "certify", k % 2) for k in range(6) for c, x in levels.items()]
    context, cache = context_of(GRAPH, [*ends, *fresh])

    def changes(*proofs: Proof) -> list[tuple[float, bool]]:
        found = compare_own_changes(context, cache, (2, 3), 4, proofs, 0.1)
        return [(round(e.estimate, 2), e.log_e_change > 5) for e in found]

    assert changes() == [(0.1, True), (0.1, True)]
    assert changes(proof(3, effect=0.0953)) == [(0.0, False), (0.1, True)]
    assert changes(proof(3, effect=0.0953), proof(2, effect=0.0953)) == [(0.0, False), (0.0, False)]
    assert changes(proof(3, effect=0.03, sd=1e-4)) == [(0.07, True), (0.1, True)]
    assert changes(proof(1, 3, effect=0.0953)) == [(0.1, False), (0.1, True)]  # it may explain it
    assert compare_own_changes(context, cache, (), 4, (), 0.1) == []
    few, few_cache = context_of(GRAPH, [*ends, *fresh[:6]])
    assert compare_own_changes(few, few_cache, (2, 3), 4, (), 0.1) == []
    assert compare_own_changes(context, cache, (1, 2), 4, (), 0.1) == []  # 1 has no fresh boots


def test_what_is_taken_off_makes_the_interval_wider() -> None:
    ends = [Seen(0, FAST, "verify"), Seen(4, SLOWEST, "verify")] * 2
    levels = {2: FAST, 3: SLOW, 4: SLOWEST}
    fresh = [Seen(c, x, "certify", k % 2) for k in range(6) for c, x in levels.items()]
    context, cache = context_of(GRAPH, [*ends, *fresh])
    (whole,) = compare_own_changes(context, cache, (2,), 4, (), 0.2)
    (left,) = compare_own_changes(context, cache, (2,), 4, (proof(3, effect=0.0953, sd=0.005),), 0.2)
    assert left.estimate == pytest.approx(whole.estimate - 0.0953, abs=1e-3)
    assert left.sd**2 == pytest.approx(whole.sd**2 + 0.005**2, rel=0.1)
    assert left.high - left.low > max(whole.high - whole.low, 4 * 0.0049)
    assert (left.low + left.high) / 2 == pytest.approx(left.estimate, abs=2e-3)
