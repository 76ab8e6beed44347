"""The next fresh boot for the proof of a suspect."""

from __future__ import annotations

from bisector.model.decisions import Measure
from bisector.search import confirmation, interleaving
from bisector.search.cache import PlannerCache, Proven
from bisector.search.candidates import Suspect
from bisector.search.certainty.suspect_probability import stated_probability
from bisector.search.context import SearchContext
from bisector.search.limits.alpha_spending import alpha_share
from bisector.search.posterior import Posterior
from bisector.search.separation.fork_references import references_for_merge
from bisector.search.separation.inseparable import commits_to_split


def next_fresh_boot(
    context: SearchContext,
    cache: PlannerCache,
    posterior: Posterior,
    found: Suspect,
    parents: tuple[int, ...],
    proven: Proven,
    effect: float,
) -> Measure:
    """Return the next trial of a suspect that can be measured against these parents, at least one.

    What tells the offset of a branch that is left out comes first: it may show that the suspect is none.
    proven, effect: what the posterior was made with.
    """
    after = found.after
    assert after is not None
    parent, share = context.goal.terms.parent, alpha_share(context, after)
    fewest = interleaving.min_boots_per_side(context, "certify", share)
    target = interleaving.cheapest_runs_per_boot(context, posterior.boot_spreads)
    expected = abs(posterior.effect(found.index)[0])
    target = min(target, interleaving.sufficient_runs_per_boot(context, expected, fewest))
    waiting = {m.commit for m in context.state.pending}
    for commit in references_for_merge(posterior, context, after, parents):
        if commit not in waiting:
            old = context.goal.terms.old
            why = f"measures the offset of a branch, which lacks part of {old}'s history, before the proof"
            return Measure(commit, target, "attribute" if proven else "search", why)
    beside = commits_to_split(context, found.commits, after, posterior.design.tested)
    one = len(parents) == 1
    names = {p: f"its {parent}" if one else f"its {parent} {k}" for k, p in enumerate(parents, start=1)}
    names |= {**dict.fromkeys(beside, "a branch off the set"), after: "the suspect"}
    side = f"its {parent}" if one else f"its {len(parents)} {parent}s"
    stated = stated_probability(context, cache, found.commits, found.probability, proven, effect)
    why = f"prove the suspect ({stated:.0%}) against {side} with fresh boots"
    first = confirmation.first_layout_compared(context, cache, after, proven, effect)
    layouts = confirmation.layouts_to_visit(posterior, first)
    return interleaving.next_interleaved(
        context, (after, *parents, *beside), "certify", target, layouts, why, names, fewest
    )
