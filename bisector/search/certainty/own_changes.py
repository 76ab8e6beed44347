"""The own change of a merge: what it differs by from a parent, without what others explain of it.

A merge holds what its other parents bring. Where both branches hold a loss, it differs from each parent by
the loss of the other one, though it changed nothing itself. So proven changes that it holds, and the parent
does not, are taken off the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtri

from bisector.search.cache import PlannerCache, Proven
from bisector.search.confirmation import Proof, compare_with_parent, enough_boots
from bisector.search.context import SearchContext
from bisector.search.sequential_test import Evidence


@dataclass(frozen=True, slots=True)
class Explained:
    """What proven changes explain of a difference, in worse units: between low and high. sd: of the estimate.

    A set of which only a part lies between the two commits may explain its whole change or nothing. The
    estimate is without it.
    """

    low: float
    estimate: float
    high: float
    sd: float

    def nearest_to(self, difference: float) -> float:
        """Return how much of a difference they may explain at most."""
        return min(max(difference, self.low), self.high)


def explained_between(
    context: SearchContext, proofs: Sequence[Proof], parent: int, after: int
) -> Explained | None:
    """Return what proofs explain of the difference of a commit from another; None if nothing.

    What only the other one holds counts against it: it need not be an ancestor. Errors are bounded as in an
    interval of 1 - alpha.
    """
    holds = context.dag.ancestors(after).astype(int) - context.dag.ancestors(parent)
    low = high = estimate = variance = 0.0
    for proof in proofs:
        signs = set(holds[list(proof.commits)].tolist())
        if signs == {0}:
            continue
        e = proof.evidence
        half = _half_width(context, e.sd)
        ends = [sign * end for sign in signs for end in (e.estimate - half, e.estimate + half)]
        low, high = low + min(ends), high + max(ends)
        if len(signs) == 1:
            estimate, variance = estimate + signs.pop() * e.estimate, variance + e.sd**2
    return Explained(low, estimate, high, math.sqrt(variance)) if low or high else None


def _half_width(context: SearchContext, sd: float) -> float:
    return -float(ndtri(context.alpha / 2)) * sd


def compare_own_changes(
    context: SearchContext,
    cache: PlannerCache,
    parents: Sequence[int],
    after: int,
    proofs: Sequence[Proof],
    effect: float,
) -> list[Evidence]:
    """Return the comparisons of a suspect with every parent, each without what proofs explain of it.

    Empty unless all of them can be made. effect: as in `PlannerCache.posterior`.
    """
    proven = tuple(p.commits for p in proofs)
    if not parents or not enough_boots(context, cache, after, parents, proven, effect):
        return []
    made = (_own_change(context, cache, parent, after, proofs, proven, effect) for parent in parents)
    result = [e for e in made if e is not None]
    return result if len(result) == len(parents) else []


def _own_change(
    context: SearchContext,
    cache: PlannerCache,
    parent: int,
    after: int,
    proofs: Sequence[Proof],
    proven: Proven,
    effect: float,
) -> Evidence | None:
    """Return the comparison with one parent. It claims no more than what is left in the worst case."""
    whole = compare_with_parent(context, cache, parent, after, proven, effect)
    explained = explained_between(context, proofs, parent, after)
    if whole is None or explained is None:
        return whole
    most = explained.nearest_to(whole.estimate)
    left = compare_with_parent(context, cache, parent, after, proven, effect, without=most)
    if left is None:
        return None
    more = explained.estimate - most
    half = _half_width(context, explained.sd)

    def interval() -> tuple[float, float]:
        middle, own = (left.low + left.high) / 2 - more, (left.high - left.low) / 2
        return middle - math.hypot(own, half), middle + math.hypot(own, half)

    return replace(
        left, estimate=left.estimate - more, sd=math.hypot(left.sd, explained.sd), interval=interval
    )
