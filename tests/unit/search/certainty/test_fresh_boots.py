"""The next fresh boot of a suspect; before it, what tells the offset of a branch that is left out."""

from __future__ import annotations

import math

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Measure
from bisector.search.candidates import Suspect, most_probable_suspect
from bisector.search.certainty.fresh_boots import next_fresh_boot
from tests.support.searching import Seen, context_of, linear

FAST, SLOW = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9)
# 1 is older than good; 3 stands on it, 2 on good, and 4 merges them
MERGED = CommitGraph(
    tuple(f"{i:040x}" for i in range(5)), ((), (), (0,), (1,), (2, 3)), (False, False, True, True, True), 0, 4
)


def trial(
    graph: CommitGraph,
    suspect: int,
    parents: tuple[int, ...],
    *seen: Seen,
    pending: tuple[Measure, ...] = (),
    proven: tuple[tuple[int, ...], ...] = (),
) -> Measure:
    ends = [Seen(c, SLOW if c else FAST, "verify") for c in (0, graph.bad) * 3]
    context, cache = context_of(graph, [*ends, *seen], pending=pending)
    posterior = cache.posterior(context, proven, math.log(1.1))
    index = most_probable_suspect(posterior, context).index
    found = Suspect(index, (suspect,), 0.8, True, suspect)
    return next_fresh_boot(context, cache, posterior, found, parents, proven, math.log(1.1))


def test_the_suspect_and_its_parent_have_fresh_boots_in_turn() -> None:
    known = (Seen(2), Seen(3, SLOW))
    first = trial(linear(4), 3, (2,), *known)
    assert (first.commit, first.purpose) == (3, "certify")
    assert first.reason.startswith("prove the suspect (")
    assert "against its parent with fresh boots: boot 1 of the suspect, " in first.reason
    second = trial(linear(4), 3, (2,), *known, Seen(3, SLOW, "certify"))
    assert (second.commit, second.purpose) == (2, "certify")


def test_the_offset_of_a_branch_is_known_before_its_merge_is_proven_against_good_s_side() -> None:
    known = (Seen(2), Seen(3, SLOW))
    first = trial(MERGED, 4, (2,), *known)
    assert (first.commit, first.purpose) == (1, "search")
    assert first.reason == (
        "measures the offset of a branch, which lacks part of good's history, before the proof"
    )
    assert trial(MERGED, 4, (2,), *known, proven=((2,),)).purpose == "attribute"
    assert trial(MERGED, 4, (2,), *known, Seen(1)).purpose == "certify"
    assert trial(MERGED, 4, (2, 3), *known).purpose == "certify"  # it is not left out
    waiting = Measure(1, 2, "search", "", testbed="other")
    assert trial(MERGED, 4, (2,), *known, pending=(waiting,)).purpose == "certify"  # another testbed does
