"""Why it is not known which commit of a proven set is the culprit."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext


def measured_inside(context: SearchContext, proof: Proof) -> bool:
    """Return whether a commit of a set was measured, besides the newest, before it could not be any more."""
    inside = set(proof.commits) - {proof.after}
    return any(v.samples and v.commit in inside for v in context.state.visits)


def why_unsplit(context: SearchContext, proofs: Sequence[Proof]) -> str:
    """Return why one does not know which commit of a set is the culprit, as a sentence."""
    unit = context.goal.unit
    if any(measured_inside(context, p) for p in proofs):
        return f"Fresh boots cannot tell which {unit} of the set it is: some cannot be tested any more."
    text = f"Untestable {unit}s hide which {unit} of the set it is."
    return (
        f"{text} --with-fix, --apply or another --recipe may make them testable."
        if unit == "commit"
        else text
    )
