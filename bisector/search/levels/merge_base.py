"""The test of a merge base, where good is no ancestor of bad: which end it is like, as git bisect asks."""

from __future__ import annotations

import math
from typing import Literal

from bisector.model.decisions import Measure
from bisector.search import endpoints
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.interleaving import boots_support_claim, min_boots_per_side, next_interleaved
from bisector.search.sequential_test import Evidence


def end_like_base(
    whole: SearchContext, cache: PlannerCache, base: int, ends: Evidence
) -> Literal["good", "bad"] | None:
    """Return the end that a merge base is like; None while that is not proven.

    It is compared with both, and is like the nearer one. That it is like bad is proven by its difference from
    good. That it is like good is proven by bad's difference from it, or once a difference from good that
    reaches the threshold is excluded. Only boots of the verification count, as for the ends.
    """
    context = cache.restrict(whole, tuple(v for v in whole.state.visits if v.purpose == "verify"))
    share = _share(context)
    if len(context.boots(base, "verify")) < min_boots_per_side(context, "verify", share):
        return None
    good, bad = context.graph.good, context.graph.bad
    below, above = _compare(context, cache, good, base), _compare(context, cache, base, bad)
    if below is None or above is None:
        return None
    if below.estimate > ends.estimate / 2:
        return "bad" if _differ(context, good, base, below, share) else None
    excluded = below.log_e_below >= math.log(1 / share)
    return "good" if excluded or _differ(context, base, bad, above, share) else None


def next_trial(context: SearchContext, base: int, ends: Evidence) -> Measure:
    """Return the next trial of a merge base: it catches up with the ends, then all three take turns."""
    terms, graph = context.goal.terms, context.graph
    fewest = min_boots_per_side(context, "verify", _share(context))
    names = {graph.good: terms.old, base: "the merge base", graph.bad: terms.new}
    return next_interleaved(
        context,
        tuple(names),
        "verify",
        endpoints.runs_in_a_boot(context, ends, fewest),
        range(1),
        f"test the merge base: it may itself be {terms.new}",
        names,
        fewest,
    )


def _share(context: SearchContext) -> float:
    """Return the alpha of each merge base: all of them together are wrong with alpha at most (Bonferroni)."""
    return context.alpha / len(context.graph.merge_bases)


def _compare(context: SearchContext, cache: PlannerCache, before: int, after: int) -> Evidence | None:
    key = ("merge base", before, after, context.readings_key)
    return cache.get_or_compute(key, lambda: endpoints.compare_two(context, before, after))


def _differ(context: SearchContext, before: int, after: int, found: Evidence, share: float) -> bool:
    """Return whether it is proven that one commit is worse than another."""
    return (
        found.log_e_change >= math.log(1 / share)
        and found.estimate > 0
        and boots_support_claim(context, before, after, "verify", share)
    )
