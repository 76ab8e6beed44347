"""What fresh boots prove: a commit, or the set that it stands for, and what of the set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bisector.search.cache import PlannerCache, Proven
from bisector.search.confirmation import (
    Proof,
    all_changed,
    compare_with_parents,
    judge_suspect,
    until_last_fresh_boot,
)
from bisector.search.context import SearchContext
from bisector.search.interleaving import BOOTS_BEFORE_MORE_LAYOUTS
from bisector.search.limits.alpha_spending import commits_with_fresh_boots
from bisector.search.separation.inseparable import commits_beside, comparison_parents, inseparable_commits


def prove_suspect(
    context: SearchContext, cache: PlannerCache, after: int, proven: Proven, effect: float
) -> Proof | None:
    """Return what the fresh boots of a commit prove; None while they leave it open.

    Parents with fresh boots count first, though some may have failed or been skipped since: what is proven by
    such boots stays proven. Without them, the commit is one of a set, compared with the parents below it.
    """
    lost = tuple(c for c in commits_with_fresh_boots(context) if not context.testable(c))
    for counted in dict.fromkeys((lost, ())):
        commits = inseparable_commits(context, after, counted)
        parents = comparison_parents(context, commits, after, counted)
        evidence = compare_with_parents(context, cache, parents, after, proven, effect)
        found = judge_suspect(context, commits, after, parents, evidence)
        if found is not None:
            found = _split(context, cache, found, counted, proven, effect)
        if found is not None:
            return found
    return None


def _split(
    context: SearchContext,
    cache: PlannerCache,
    whole: Proof,
    counted: Sequence[int],
    proven: Proven,
    effect: float,
) -> Proof | None:
    """Return the proof of what fresh boots of commits beside a set leave of it; None while they are too few.

    One with a part of it differs from `after` or from the parents, unless it has a change of its own. After
    many boots that tell neither, the set stays whole; also where all boots leave more than alpha of doubt
    that what is left holds a culprit of it: two on branches look like one below both.
    """
    left, without, after = set(whole.commits), False, whole.after
    others = commits_beside(context, whole.commits, after, commits_with_fresh_boots(context), counted)

    def shows(parents: tuple[int, ...], commit: int) -> bool:
        found = compare_with_parents(context, cache, parents, commit, proven, effect)
        same_way = all(e.estimate * whole.evidence.estimate > 0 for e in found)
        return same_way and all_changed(context, commit, found)

    for beside in others:
        inside = context.dag.ancestors(beside)
        parts = {c for c in left if inside[c]}
        if not parts:
            continue
        if shows((beside,), after):
            left -= parts
        elif shows(whole.parents, beside):
            left, without = parts | {after}, True
        elif len(context.boots(after, "certify")) < BOOTS_BEFORE_MORE_LAYOUTS:
            return None
    if len(left) == len(whole.commits) and not without:
        return whole
    compared = until_last_fresh_boot(context, cache, {after, *whole.parents, *others})
    posterior = cache.posterior(compared, proven, effect)
    weight = posterior.commit_probabilities(context.dag.weights)
    named = sorted(left - {after} if without else left)
    held = min(1.0, float(weight[list(whole.commits)].sum()))  # 1 as well where it holds two
    if float(weight[named].sum()) < (1 - context.alpha) * held:
        return whole
    return replace(whole, commits=tuple(sorted(left)), without=without)
