"""Commits that tell the offset of branches which lack part of good's history."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.separation.fork_references import fork_references, references_for_merge
from tests.support.searching import Seen, context_of

GOOD, BAD = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9)
# 0 good; 1, 2, 3 older fork points, each with a branch of two commits; 10 from good; 11 to 13 merge them
PARENTS = ((), (), (), (), (1,), (4,), (2,), (6,), (3,), (8,), (0,), (10, 5), (11, 7), (12, 9))
GRAPH = CommitGraph(
    tuple(f"{i:040x}" for i in range(14)),
    PARENTS,
    (False,) * 4 + (True,) * 10,
    0,
    13,
    untestable={1: "skipped"},
)


def searched(*slow: int) -> tuple[SearchContext, Posterior]:
    """Return what is known after three boots of each end, and one of each of these, which are slow."""
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 13) * 3]
    context, cache = context_of(GRAPH, [*ends, *(Seen(c, BAD) for c in slow)])
    return context, cache.posterior(context, (), math.log(1.1))


def test_branches_that_lack_good_are_compared_with_their_own_past() -> None:
    """Else the offset of a branch, of half a release perhaps, would be taken for the loss."""
    context, posterior = searched(5, 7, 9)
    mass = np.array([0.0, 0.0, 0.0, 0.0, 0.1, 0.5, 0.1, 0.4, 0.1, 0.3, 0.0, 0.6, 0.8, 1.0])
    # Of the two that are nearest to the middle: the newest commit without a suspect that can be measured.
    assert fork_references(posterior, context, mass) == [4, 2]
    sure = np.where(np.isin(np.arange(14), (5, 7)), 0.99, mass)
    assert fork_references(posterior, context, sure) == [3]
    assert fork_references(posterior, context, np.where(mass < 1, 0.0, 1.0)) == []


def test_a_merge_is_not_compared_with_good_s_side_alone_before_the_other_branches_are_known() -> None:
    """Else what a branch brings would be taken for a change of its merge."""
    context, posterior = searched(5, 7, 9)
    assert references_for_merge(posterior, context, 13, (12,)) == [3]
    assert references_for_merge(posterior, context, 13, (12, 9)) == []  # none is left out
    assert references_for_merge(posterior, context, 10, (0,)) == []
    # 11 and 12 cannot be tested: 13 stands for all three. 4 is older than 5, and 1 cannot be tested.
    together, cache = context_of(
        replace(GRAPH, untestable={1: "skipped", 11: "skipped", 12: "skipped"}), [Seen(0), Seen(13, BAD)] * 3
    )
    none = cache.posterior(together, (), math.log(1.1))
    assert references_for_merge(none, together, 13, (10,)) == [4, 2, 3]
    context, posterior = searched(3, 9)
    assert references_for_merge(posterior, context, 13, (12,)) == []  # it is known
