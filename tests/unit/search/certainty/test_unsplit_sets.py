"""Why a set is not split: a commit of it was measured and then failed, or none could ever be tested."""

from __future__ import annotations

from bisector.model.goal import Unit
from bisector.search.certainty.unsplit_sets import measured_inside, why_unsplit
from bisector.search.confirmation import Proof
from tests.support.searching import Seen, context_of, goal, linear, make_evidence

SET = Proof((3, 4), 4, (2,), make_evidence(10.0, -10.0, 0.08, 0.1, 0.12, 0.01, 1.0), 0.03)


def test_only_boots_of_the_other_commits_of_a_set_count_as_measured_inside() -> None:
    outside, _ = context_of(linear(6), [Seen(4), Seen(2), Seen(5)])
    inside, _ = context_of(linear(6), [Seen(4), Seen(3)])
    assert (measured_inside(outside, SET), measured_inside(inside, SET)) == (False, True)


def test_the_sentence_says_what_may_help() -> None:
    def said(seen: int, unit: Unit) -> str:
        context, _ = context_of(linear(6), [Seen(seen)], wanted=goal(unit=unit))
        return why_unsplit(context, [SET])

    assert said(3, "commit").endswith("which commit of the set it is: some cannot be tested any more.")
    assert said(4, "commit").endswith("or another --recipe may make them testable.")
    assert said(4, "kernel") == "Untestable kernels hide which kernel of the set it is."
