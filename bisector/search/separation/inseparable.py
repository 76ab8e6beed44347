"""Commits that no test tells apart, those that a suspect is compared with, and those that split a set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bisector.model.dag import Ints
from bisector.search.context import SearchContext


def nearest_testable_parents(
    context: SearchContext, commits: Sequence[int], counted: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the nearest testable commits below a set: its parents, or theirs where these are untestable.

    counted: untestable commits that count as testable, here and below.
    """
    found: set[int] = set()
    seen = set(commits)
    todo = [p for c in commits for p in context.graph.parents[c]]
    while todo:
        commit = todo.pop()
        if commit in seen:
            continue
        seen.add(commit)
        if commit in counted or context.testable(commit):
            found.add(commit)
        else:
            todo.extend(context.graph.parents[commit])
    return tuple(sorted(found))


def inseparable_commits(context: SearchContext, after: int, counted: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the commit and the untestable commits below it, which no test can tell from it."""
    found, todo = {after}, list(context.graph.parents[after])
    while todo:
        commit = todo.pop()
        if commit in found or commit in counted or context.testable(commit):
            continue
        if not context.dag.candidate[commit]:
            continue
        found.add(commit)
        todo.extend(context.graph.parents[commit])
    return tuple(sorted(found))


def commit_measured_for(
    context: SearchContext, commits: Sequence[int], measured: Sequence[int]
) -> int | None:
    """Return the commit to measure for a set whose newest commits cannot be tested; None where there is none.

    It holds the set, and nothing testable lies between: else a proof of it is of other commits. Of those that
    were measured the one with the fewest inseparable commits is taken; without one the first in the order of
    the graph, which is such a one where no test splits the set. measured: commits that hold it.
    """
    together = {c: inseparable_commits(context, c) for c in measured if context.testable(c)}
    near = [c for c, inside in together.items() if {*commits} <= {*inside}]
    if near:
        return min(near, key=lambda c: len(together[c]))
    holding = context.testable_mask & (count_contained(context, commits) == len(commits))
    return int(np.argmax(holding)) if holding.any() else None


def comparison_parents(
    context: SearchContext, commits: Sequence[int], after: int, counted: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the commits to compare a suspect with: its testable parents.

    A parent that lacks part of good's history has an offset of its own, which looks like an effect. It is
    left out if another parent has the same fork base as the suspect.
    """
    found = nearest_testable_parents(context, commits, counted)
    base = context.dag.fork_base(after)
    same_base = tuple(c for c in found if context.dag.fork_base(c) == base)
    return same_base or found


def parents_left_out(
    context: SearchContext, commits: Sequence[int], parents: Sequence[int], counted: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the nearest testable commits below a set that are not among those it is compared with."""
    return tuple(c for c in nearest_testable_parents(context, commits, counted) if c not in parents)


def commits_beside(
    context: SearchContext,
    commits: Sequence[int],
    after: int,
    among: Iterable[int],
    counted: Sequence[int] = (),
) -> tuple[int, ...]:
    """Return the testable commits of some that contain a part of a set, but not its newest commit.

    Such a branch left the history of `after` amid untestable commits. Where it does not show the change, what
    it contains of the set is not the culprit; where it does, what it lacks is not. One that lacks a part of
    good's history which `after` has is left out, as among the parents. commits: with `after`.
    """
    others, base = sorted(set(commits) - {after}), context.dag.fork_base(after)
    return tuple(
        c
        for c in among
        if others
        and context.dag.fork_base(c) == base
        and (c in counted or context.testable(c))
        and (inside := context.dag.ancestors(c))[others].any()
        and not inside[after]
    )


def commits_to_split(
    context: SearchContext, suspects: Sequence[int], after: int, measured: Sequence[int]
) -> tuple[int, ...]:
    """Return the commits whose fresh boots leave of a set what the search suspects, or nearly so.

    suspects: those of the set that the search cannot tell apart; measured: commits by which it told them from
    the others. Of those that split off as many the one with the shortest history is taken. What has
    fresh boots already has to be decided about, so it is among them. That `after` is none of the suspects is
    not worth boots: the others of the set cannot be tested anyway.
    """
    commits = inseparable_commits(context, after)
    begun = commits_beside(context, commits, after, context.booted("certify"))
    left = set(commits) - {after, *suspects}
    options = commits_beside(context, commits, after, measured) if left else ()
    inside = {c: context.dag.ancestors(c) for c in (*begun, *options)}
    size = {c: int(inside[c].sum()) for c in inside}

    def split(c: int) -> set[int]:
        return {x for x in left if inside[c][x] != inside[c][suspects[0]]}

    chosen = list(begun)
    for c in begun:
        left -= split(c)
    while options and split(best := max(options, key=lambda c: (len(split(c)), -size[c]))):
        chosen.append(best)
        left -= split(best)
    return tuple(chosen)


def can_be_split(context: SearchContext, commits: Sequence[int]) -> bool:
    """Return whether a testable commit contains a part of a set, so that a test may split it."""
    contained = count_contained(context, commits)
    return bool((context.testable_mask & (contained > 0) & (contained < len(commits))).any())


def count_contained(context: SearchContext, commits: Sequence[int]) -> Ints:
    """Return how many of some commits each commit (n,) contains, itself included."""
    inside = np.zeros(context.dag.n)
    inside[list(commits)] = 1.0
    return np.rint(context.dag.mass(inside)).astype(np.int64)
