"""Why it is not known which commit of a proven set is the culprit."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.model.decisions import NEWEST_IS_NONE, NO_FRESH_BOOTS_TELL
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.separation.inseparable import can_be_split


def measured_inside(context: SearchContext, proof: Proof) -> bool:
    """Return whether a commit of a set was measured, besides the newest, before it could not be any more."""
    inside = set(proof.commits) - {proof.after}
    return any(v.samples and v.commit in inside for v in context.state.visits)


def note_on_set(context: SearchContext, proof: Proof) -> str:
    """Return what is known of a set of several commits, as a note."""
    others = sorted(set(proof.commits) - {proof.after} if proof.without else proof.commits)
    split = measured_inside(context, proof) or can_be_split(context, others)
    apart = f"{NO_FRESH_BOOTS_TELL if split else 'no test tells'} these {context.goal.unit}s apart"
    if not proof.without:
        return apart
    return f"{NEWEST_IS_NONE}; {apart}" if len(others) > 1 else NEWEST_IS_NONE


def why_unsplit(context: SearchContext, proofs: Sequence[Proof]) -> str:
    """Return why one does not know which commit of a set is the culprit, as a sentence."""
    unit = context.goal.unit
    measured = [p for p in proofs if measured_inside(context, p)]
    if measured:
        testable = any(context.testable(c) for p in measured for c in p.commits if c != p.after)
        why = "other sets explain the same levels" if testable else "some cannot be tested any more"
        return f"Fresh boots cannot tell which {unit} of the set it is: {why}."
    text = f"Untestable {unit}s hide which {unit} of the set it is."
    return (
        f"{text} --with-fix, --apply or another --recipe may make them testable."
        if unit == "commit"
        else text
    )
