"""Why a set is not split: a commit of it was measured and then failed, or none could ever be tested."""

from __future__ import annotations

from dataclasses import replace

from bisector.model.goal import Unit
from bisector.search.certainty.unsplit_sets import measured_inside, note_on_set, why_unsplit
from bisector.search.confirmation import Proof
from tests.support.searching import Seen, context_of, goal, graph_of, linear, make_evidence

SET = Proof((3, 4), 4, (2,), make_evidence(10.0, -10.0, 0.08, 0.1, 0.12, 0.01, 1.0), 0.03)


def test_only_boots_of_the_other_commits_of_a_set_count_as_measured_inside() -> None:
    outside, _ = context_of(linear(6), [Seen(4), Seen(2), Seen(5)])
    inside, _ = context_of(linear(6), [Seen(4), Seen(3)])
    assert (measured_inside(outside, SET), measured_inside(inside, SET)) == (False, True)


def test_the_sentence_says_what_may_help() -> None:
    def said(seen: int, unit: Unit, *, lost: bool = True) -> str:
        graph = linear(6, untestable={3: "skipped"} if lost else {})
        context, _ = context_of(graph, [Seen(seen)], wanted=goal(unit=unit))
        return why_unsplit(context, [SET])

    assert said(3, "commit", lost=False).endswith("of the set it is: other sets explain the same levels.")
    assert said(3, "commit").endswith("which commit of the set it is: some cannot be tested any more.")
    assert said(4, "commit").endswith("or another --recipe may make them testable.")
    assert said(4, "kernel") == "Untestable kernels hide which kernel of the set it is."


def test_the_note_on_a_set_says_whether_a_test_may_split_it_and_whether_the_newest_is_excluded() -> None:
    """3 and 4 cannot be tested; 6 leaves the line after 3."""
    parents = ((), (0,), (1,), (2,), (3,), (4,), (3,), (5, 6))
    graph = graph_of(parents)
    whole = replace(SET, commits=(3, 4, 5), after=5)
    none = "one without the newest shows the change as well, so it is among the others"

    def note(proof: Proof, *untestable: int, seen: int = 5) -> str:
        context, _ = context_of(replace(graph, untestable=dict.fromkeys(untestable, "x")), [Seen(seen)])
        return note_on_set(context, proof)

    assert note(whole, 3, 4) == "no fresh boots tell these commits apart"  # 6 may
    assert note(whole, 3, 4, 6) == "no test tells these commits apart"
    assert note(whole, 3, 4, 6, seen=4) == "no fresh boots tell these commits apart"
    assert note(replace(whole, without=True), 3, 4, 6) == f"{none}; no test tells these commits apart"
    assert note(replace(whole, without=True), 3, 4) == f"{none}; no fresh boots tell these commits apart"
    assert note(replace(whole, commits=(3, 5), without=True), 3, 4) == none
