"""The certificate of a culprit: fresh boots against every parent, which the search's data are no part of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bisector.search import sequential_test
from bisector.search.cache import PlannerCache, Proven
from bisector.search.context import SearchContext
from bisector.search.interleaving import (
    BOOTS_BEFORE_MORE_LAYOUTS,
    CERTIFICATE_LAYOUTS,
    LARGE_SCATTER_LAYOUTS,
    SCATTER_LAYOUTS,
    min_boots_per_side,
)
from bisector.search.posterior import Posterior
from bisector.search.sequential_test import Evidence


@dataclass(frozen=True, slots=True)
class Proof:
    """A change (by one commit, or by a set that cannot be split) that fresh boots have proven.

    commits: the set; after: the commit that was measured for it; parents: those it was measured against;
    evidence: the weakest of the comparisons; share: the alpha it was allowed to spend; small: it does not
    reach the threshold, and is no culprit.
    """

    commits: tuple[int, ...]
    after: int
    parents: tuple[int, ...]
    evidence: Evidence
    share: float
    small: bool = False


def judge_suspect(
    context: SearchContext, commits: tuple[int, ...], after: int, found: Sequence[Evidence]
) -> Proof | None:
    """Return what the comparisons with every parent prove, None while they leave it open.

    A culprit has changed, and may well reach the threshold. What has changed and hardly reaches it is called
    small when that is proven too, or when further boots would not tell more: under an exact clock none does.
    """
    alpha = share(context, after)
    if not found or any(e.change < math.log(1 / alpha) for e in found):
        return None
    weakest = min(found, key=lambda e: e.change)
    proven = Proof(commits, after, comparison_parents(context, commits, after), weakest, alpha)
    below = [e for e in found if e.above <= context.alpha]
    if not below:
        return proven
    known = context.exact_clock or len(context.boots((after,), "certify")) >= BOOTS_BEFORE_MORE_LAYOUTS
    if known or any(e.less >= math.log(1 / context.alpha) for e in below):
        return replace(proven, small=True)
    return None


def before(context: SearchContext, commits: Sequence[int]) -> tuple[int, ...]:
    """Return the nearest testable commits below a set: its parents, or theirs where they cannot be tested."""
    found: set[int] = set()
    seen = set(commits)
    todo = [p for c in commits for p in context.graph.parents[c]]
    while todo:
        commit = todo.pop()
        if commit in seen:
            continue
        seen.add(commit)
        if context.testable(commit):
            found.add(commit)
        else:
            todo.extend(context.graph.parents[commit])
    return tuple(sorted(found))


def binaries_scatter(posterior: Posterior) -> bool:
    """Return whether binaries of equal code may well scatter by an amount that matters."""
    large = 0.2 * posterior.design.effect
    weighed = zip(posterior.fits.noises, posterior.weights, strict=True)
    return sum(float(w) for n, w in weighed if n.unit >= large) >= 0.25


def layouts_to_visit(posterior: Posterior) -> Sequence[int]:
    """Return the code layouts that a certificate goes over: more where binaries scatter.

    Then the ordinary one, 0, is none of them: the search has chosen the suspect by it.
    """
    if not binaries_scatter(posterior):
        return range(CERTIFICATE_LAYOUTS)
    many = posterior.noise_rms("unit") > 0.35 * posterior.design.effect
    return range(1, 1 + (LARGE_SCATTER_LAYOUTS if many else SCATTER_LAYOUTS))


def commits_with_fresh_boots(context: SearchContext) -> list[int]:
    """Return the commits with boots for a certificate, oldest first."""
    order: dict[int, int] = {}
    for i, v in enumerate(context.state.visits):
        if v.purpose == "certify" and v.samples:
            order.setdefault(v.commit, i)
    return list(order)


def comparison_parents(context: SearchContext, commits: Sequence[int], after: int) -> tuple[int, ...]:
    """Return the commits to compare a suspect with.

    A parent that lacks part of good's history has an offset of its own, which the comparison would mistake
    for the effect; it is left out where another parent has the same base as the suspect.
    """
    found = before(context, commits)
    base = context.dag.fork_base(after)
    level = tuple(c for c in found if context.dag.fork_base(c) == base)
    return level or found


def compare_with_parent(
    whole: SearchContext, cache: PlannerCache, parent: int, after: int, proven: Proven, effect: float
) -> Evidence | None:
    """Return what fresh boots say about a suspect against one parent, None before both have one.

    The prior for the effect and the spreads come from the visits before the suspect's first fresh boot;
    visits after the last fresh boot of the two change nothing, so that the answer stays once it is given.
    """
    visits = whole.state.visits
    fresh = [i for i, v in enumerate(visits) if v.purpose == "certify" and v.samples]
    begun = [i for i in fresh if visits[i].commit == after]
    if not begun or not any(visits[i].commit == parent for i in fresh):
        return None
    end = max(i for i in fresh if visits[i].commit in (after, parent)) + 1
    context = cache.part(whole, visits[:end])
    return cache.get_or_compute(
        ("certificate", parent, after, proven, effect, context.data_key),
        lambda: _compare_with_parent(context, cache, parent, after, begun[0], proven, effect),
    )


def _compare_with_parent(
    context: SearchContext,
    cache: PlannerCache,
    parent: int,
    after: int,
    start: int,
    proven: Proven,
    effect: float,
) -> Evidence | None:
    r = context.readings
    assert r is not None
    earlier = cache.part(context, context.state.visits[:start])
    posterior = cache.posterior(earlier, proven, effect)
    mean, sd = _expected_effect(posterior, after, parent)
    chosen = np.array([p == "certify" for p in r.purpose])
    if context.can_vary_layout and binaries_scatter(posterior):
        # The search has chosen this pair by its ordinary binaries: their own offsets are part of the reason.
        chosen &= r.layout > 0
    sign = math.copysign(1.0, mean)
    sides = context.comparison_sides(parent, after, chosen)
    if sides is None:
        return None
    a, b = sides
    flipped = (
        sequential_test.Side(sign * a.location, a.precision, a.binary),
        sequential_test.Side(sign * b.location, b.precision, b.binary),
    )
    spreads = context.spread_hypotheses(posterior)
    if context.exact_clock:
        # Counted instructions see no code layout: what two binaries differ by is what the commit did. A
        # spread that no further layout can average away would keep the comparison from ever ending.
        spreads = [replace(s, unit=0.0) for s in spreads]
    e = sequential_test.compare_sides(
        *flipped,
        spreads,
        r.run_df,
        sequential_test.estimated_effect_prior(abs(mean), sd, r.scale.threshold),
        threshold=r.scale.threshold,
        floor=context.resolution,
        alpha=context.alpha,
    )
    low, high = (e.low, e.high) if sign > 0 else (-e.high, -e.low)
    return replace(e, low=low, estimate=sign * e.estimate, high=high)


def _expected_effect(posterior: Posterior, after: int, parent: int) -> tuple[float, float]:
    """Return mean and deviation of the effect that the search expects between two commits."""
    p = posterior.design
    index = {c: i for i, c in enumerate(p.tested)}
    if after in index and parent in index:
        inside = p.classes.contains[:, index[after]] & ~p.classes.contains[:, index[parent]]
        if inside.any():
            k = int(np.argmax(np.where(inside, posterior.marginal, -1.0)))
            return posterior.effect(k)
    k = int(np.argmax(posterior.marginal))
    return posterior.effect(k)


def share(context: SearchContext, after: int) -> float:
    """Return the part of alpha that this suspect's certificate may spend: 6 / (pi j)^2, summing to one."""
    order = commits_with_fresh_boots(context)
    j = order.index(after) + 1 if after in order else len(order) + 1
    return context.alpha * 6 / (math.pi * j) ** 2


def enough_boots(context: SearchContext, commits: Sequence[int]) -> bool:
    """Return whether all sides have the fewest boots, and layouts, that a certificate needs."""
    for c in commits:
        boots = context.boots((c,), "certify")
        if len(boots) < min_boots_per_side(context, "certify"):
            return False
        if context.can_vary_layout and len({v.layout for v in boots}) < CERTIFICATE_LAYOUTS:
            return False
    return True
