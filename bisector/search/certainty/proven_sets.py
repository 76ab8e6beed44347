"""What fresh boots prove: a commit, or the set that it stands for, and what of the set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bisector.search.cache import PlannerCache
from bisector.search.certainty.own_changes import compare_own_changes, explained_between
from bisector.search.confirmation import Proof, all_changed, judge_suspect, until_last_fresh_boot
from bisector.search.context import SearchContext
from bisector.search.interleaving import BOOTS_BEFORE_MORE_LAYOUTS
from bisector.search.limits.alpha_spending import commits_with_fresh_boots
from bisector.search.separation.inseparable import (
    commits_beside,
    comparison_parents,
    inseparable_commits,
    nearest_testable_parents,
    parents_left_out,
)
from bisector.search.sequential_test import Evidence


def suspects_to_judge(context: SearchContext) -> list[int]:
    """Return the candidates with fresh boots in the order in which they are judged: merges after all others.

    What the others are proven to explain is no change of a merge.
    """
    found = [c for c in commits_with_fresh_boots(context) if context.dag.candidate[c]]

    def merges(commit: int) -> bool:  # parents that it is not compared with count as well
        return len(nearest_testable_parents(context, inseparable_commits(context, commit))) > 1

    return sorted(found, key=merges)


def prove_suspect(
    context: SearchContext, cache: PlannerCache, after: int, proofs: Sequence[Proof], effect: float
) -> Proof | None:
    """Return what the fresh boots of a commit prove; None while they leave it open. proofs: of others.

    A proof without commits names none: the fresh boots show no more than what others explain.
    Parents with fresh boots count first, though some may have failed or been skipped since: what is proven by
    such boots stays proven. Without them, the commit is one of a set, compared with the parents below it.
    """
    lost = tuple(c for c in commits_with_fresh_boots(context) if not context.testable(c))
    for counted in dict.fromkeys((lost, ())):
        commits = inseparable_commits(context, after, counted)
        parents = comparison_parents(context, commits, after, counted)
        others = [p for p in proofs if not {*commits} & {*p.commits}]
        evidence = compare_own_changes(context, cache, parents, after, others, effect)
        found = judge_suspect(context, commits, after, parents, evidence)
        explained = any(explained_between(context, others, p, after) is not None for p in parents)
        if found is not None and found.small and explained:
            found = replace(found, commits=())  # too little is left to name it
        elif found is not None:
            found = _split(context, cache, found, counted, others, effect)
            if found is not None and _brought(context, cache, found, counted, others, effect):
                found = replace(found, commits=())
        elif explained:
            found = _wide(context, cache, after, parents, evidence, others, effect)
        if found is not None:
            return found
    return None


def _brought(
    context: SearchContext,
    cache: PlannerCache,
    found: Proof,
    counted: Sequence[int],
    proofs: Sequence[Proof],
    effect: float,
) -> bool:
    """Return whether a change is more likely brought by a branch that it was not compared with."""
    if not parents_left_out(context, found.commits, found.parents, counted):
        return False
    weight = _weights(context, cache, (found.after, *found.parents), proofs, effect)
    between = context.dag.ancestors(found.after)
    for parent in found.parents:
        between &= ~context.dag.ancestors(parent)
    return float(weight[list(found.commits)].sum()) < float(weight[between].sum()) / 2


def _weights(
    context: SearchContext,
    cache: PlannerCache,
    booted: Collection[int],
    proofs: Sequence[Proof],
    effect: float,
) -> NDArray[np.float64]:
    """Return for every commit (n,) the probability that it is a culprit, by all up to the last fresh boot."""
    compared = until_last_fresh_boot(context, cache, booted)
    posterior = cache.posterior(compared, tuple(p.commits for p in proofs), effect)
    return posterior.commit_probabilities(context.dag.weights)


def _wide(
    context: SearchContext,
    cache: PlannerCache,
    after: int,
    parents: tuple[int, ...],
    own: Sequence[Evidence],
    proofs: Sequence[Proof],
    effect: float,
) -> Proof | None:
    """Return what is proven of a merge that others explain in part; None while it is open whether they do.

    It differs from each, so something has changed that it holds and that parent lacks. Where what is proven
    does not explain that, it is another commit there; those are named that hold all but alpha of the
    probability. Without such a parent no commit is named: what is proven may be all that it shows. own: the
    comparisons without what proofs explain.
    """
    differs = judge_suspect(
        context, (), after, parents, compare_own_changes(context, cache, parents, after, (), effect)
    )
    if differs is None or not own:  # with what is proven, more layouts may be needed
        return None
    may_be_its_own = any(
        e.p_reaches_threshold > context.alpha and not all_changed(context, after, [e]) for e in own
    )
    if may_be_its_own and len(context.boots(after, "certify")) < BOOTS_BEFORE_MORE_LAYOUTS:
        return None
    weight = _weights(context, cache, {after, *parents}, proofs, effect) + 1e-12 * context.dag.weights
    best = replace(differs, commits=())
    for parent, evidence in zip(parents, own, strict=True):
        found = judge_suspect(context, (), after, (parent,), [evidence])
        if found is None or found.small:
            continue
        between = context.dag.ancestors(after) & ~context.dag.ancestors(parent) & context.dag.candidate
        order = sorted(np.flatnonzero(between).tolist(), key=lambda c: (-weight[c], c))
        held = np.cumsum(weight[order])
        named = order[: int(np.searchsorted(held, (1 - context.alpha) * held[-1])) + 1]
        if not best.commits or len(named) < len(best.commits):
            best = replace(found, commits=tuple(sorted(named)))
    return best


def _split(
    context: SearchContext,
    cache: PlannerCache,
    whole: Proof,
    counted: Sequence[int],
    proofs: Sequence[Proof],
    effect: float,
) -> Proof | None:
    """Return the proof of what fresh boots of commits beside a set leave of it; None while they are too few.

    One with a part of it differs from `after` or from the parents, unless it has a change of its own. After
    many boots that tell neither, the set stays whole; also where all boots leave more than alpha of doubt
    that what is left holds a culprit of it: two on branches look like one below both. Its effect is that of
    the closest comparison, where the branch has no change of its own: the others may hold another change.
    """
    left, without, after = set(whole.commits), False, whole.after
    others = commits_beside(context, whole.commits, after, commits_with_fresh_boots(context), counted)
    closest: list[tuple[int, int, Proof]] = []  # (commits of the set between, branch, comparison)

    def shows(parents: tuple[int, ...], commit: int) -> list[Evidence]:
        found = compare_own_changes(context, cache, parents, commit, proofs, effect)
        same_way = all(e.estimate * whole.evidence.estimate > 0 for e in found)
        return found if same_way and all_changed(context, commit, found) else []

    for beside in others:
        inside = context.dag.ancestors(beside)
        parts = {c for c in left if inside[c]}
        if not parts:
            continue
        if made := shows((beside,), after):
            left -= parts
            weakest = min(made, key=lambda e: e.log_e_change)
            apart = sum(not inside[c] for c in whole.commits)
            closest.append((apart, beside, replace(whole, parents=(beside,), evidence=weakest)))
        elif shows(whole.parents, beside):
            left, without = parts | {after}, True
        elif len(context.boots(after, "certify")) < BOOTS_BEFORE_MORE_LAYOUTS:
            return None
    if len(left) == len(whole.commits) and not without:
        return whole
    weight = _weights(context, cache, {after, *whole.parents, *others}, proofs, effect)

    def own_mass(beside: int) -> float:
        return float(weight[context.dag.ancestors(beside) & ~context.dag.ancestors(after)].sum())

    named = sorted(left - {after} if without else left)
    held = min(1.0, float(weight[list(whole.commits)].sum()))  # 1 as well where it holds two
    if float(weight[named].sum()) < (1 - context.alpha) * held:
        return whole
    clean = (x for x in sorted(closest, key=lambda x: x[:2]) if own_mass(x[1]) <= context.alpha)
    return replace(next((p for *_, p in clean), whole), commits=tuple(sorted(left)), without=without)
