"""The certificate of a culprit: fresh boots against every parent. The data of the search do not count."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bisector.model.state import Visit
from bisector.search import sequential_test
from bisector.search.cache import PlannerCache, Proven
from bisector.search.context import SearchContext
from bisector.search.interleaving import (
    BOOTS_BEFORE_MORE_LAYOUTS,
    CERTIFICATE_LAYOUTS,
    LARGE_SCATTER_LAYOUTS,
    SCATTER_LAYOUTS,
    boots_support_claim,
    interleaved_boots,
)
from bisector.search.limits.alpha_spending import alpha_share, alpha_spent
from bisector.search.posterior import Posterior
from bisector.search.predictive import expected_effect
from bisector.search.sequential_test import EffectPrior, Evidence, Side, SpreadHypothesis

LARGE_BINARY_SPREAD = 0.2
"""Binaries scatter noticeably if their standard deviation is at least this share of the effect."""
LARGE_BINARY_SPREAD_PROBABILITY = 0.25
"""The binary spread counts as large if it is noticeable with at least this probability."""
EXPECTED_DIRECTION_SHARE = 0.95
"""Weight of the direction in which the search expects an effect; the other one has the rest. A search that
few boots misled may expect a gain where there is a loss: without it 2 of 123 proofs went on until the budget
ended, though all 128 boots of a side spoke for them."""
MANY_LAYOUTS_BINARY_SPREAD = 0.35
"""From this binary spread on, in effects, a certificate goes over LARGE_SCATTER_LAYOUTS layouts."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A change that fresh boots have proven.

    commits: one commit, or a set that cannot be split; after: the commit measured for it; parents: those it
    was compared with; evidence: the weakest of the comparisons; alpha_spent: see `alpha_spent`;
    small: the change does not reach the threshold, so it is no culprit; without: a commit that lacks `after`
    shows the change as well, so it is one of the others.
    """

    commits: tuple[int, ...]
    after: int
    parents: tuple[int, ...]
    evidence: Evidence
    alpha_spent: float
    small: bool = False
    without: bool = False


def judge_suspect(
    context: SearchContext,
    commits: tuple[int, ...],
    after: int,
    parents: tuple[int, ...],
    found: Sequence[Evidence],
) -> Proof | None:
    """Return what the comparisons with every parent prove; None while they leave it open.

    A change that may reach the threshold is a culprit. A change below the threshold is called small once that
    is proven, or once further boots would not tell more; under an exact clock none would.
    """
    if not all_changed(context, after, found):
        return None
    weakest = min(found, key=lambda e: e.log_e_change)
    proven = Proof(commits, after, parents, weakest, alpha_spent(context, after))
    below = [e for e in found if e.p_reaches_threshold <= context.alpha]
    if not below:
        return proven
    known = context.exact_clock or len(context.boots(after, "certify")) >= BOOTS_BEFORE_MORE_LAYOUTS
    if known or any(e.log_e_below >= math.log(1 / context.alpha) for e in below):
        return replace(proven, small=True)
    return None


def all_changed(context: SearchContext, after: int, found: Sequence[Evidence]) -> bool:
    """Return whether comparisons of a suspect, at least one, all show a change at its share of alpha."""
    need = math.log(1 / alpha_share(context, after))
    return bool(found) and all(e.log_e_change >= need for e in found)


def until_last_fresh_boot(
    whole: SearchContext, cache: PlannerCache, commits: Collection[int]
) -> SearchContext:
    """Return the context up to the last fresh boot of some commits, of which there is one. What is concluded
    from it does not change while the search goes on."""
    visits = whole.state.visits
    last = max(i for i, v in enumerate(visits) if is_fresh(v) and v.commit in commits)
    return cache.restrict(whole, visits[: last + 1])


def is_fresh(visit: Visit) -> bool:
    """Return whether a visit is one of a certificate, with samples."""
    return visit.purpose == "certify" and bool(visit.samples)


def binaries_scatter(posterior: Posterior) -> bool:
    """Return whether binaries of equal code probably scatter by an amount that matters."""
    large = LARGE_BINARY_SPREAD * posterior.design.effect
    return posterior.noise_reaches("binary", large) >= LARGE_BINARY_SPREAD_PROBABILITY


def first_layout_compared(
    context: SearchContext, cache: PlannerCache, after: int, proven: Proven, effect: float
) -> int:
    """Return the first code layout whose boots the comparisons of a suspect use.

    It is 1 where binaries scattered by the visits before the suspect's first fresh boot. The search chose it
    by ordinary builds, which are layout 0, so their own offsets are selected, too.
    """
    if not context.can_vary_layout:
        return 0
    visits = context.state.visits
    fresh = (i for i, v in enumerate(visits) if is_fresh(v) and v.commit == after)
    earlier = cache.restrict(context, visits[: next(fresh, len(visits))])
    return cache.get_or_compute(
        ("first layout", proven, effect, earlier.data_key),
        lambda: int(binaries_scatter(cache.posterior(earlier, proven, effect))),
    )


def layouts_to_visit(posterior: Posterior, first: int) -> Sequence[int]:
    """Return the code layouts that a certificate goes over: more where binaries scatter.

    There layout 0 is left out. first: the first layout that the comparisons use (`first_layout_compared`).
    """
    if not binaries_scatter(posterior):
        return range(first, first + CERTIFICATE_LAYOUTS)
    many = posterior.noise_rms("binary") > MANY_LAYOUTS_BINARY_SPREAD * posterior.design.effect
    return range(1, 1 + (LARGE_SCATTER_LAYOUTS if many else SCATTER_LAYOUTS))


def compare_with_parent(
    whole: SearchContext,
    cache: PlannerCache,
    parent: int,
    after: int,
    proven: Proven,
    effect: float,
    *,
    without: float = 0.0,
) -> Evidence | None:
    """Return the comparison of a suspect with one parent by fresh boots; None before both have one.

    without: what is taken off the difference, in worse units. The priors come from the visits before the
    suspect's first fresh boot. Visits after the last fresh boot of the two change nothing, so a verdict does
    not change during the search.
    """
    visits = whole.state.visits
    fresh = [i for i, v in enumerate(visits) if is_fresh(v)]
    begun = [i for i in fresh if visits[i].commit == after]
    if not begun or not any(visits[i].commit == parent for i in fresh):
        return None
    context = until_last_fresh_boot(whole, cache, (after, parent))
    return cache.get_or_compute(
        ("certificate", parent, after, proven, effect, without, context.data_key),
        lambda: _compare_with_parent(context, cache, parent, after, begun[0], proven, effect, without),
    )


def _compare_with_parent(
    context: SearchContext,
    cache: PlannerCache,
    parent: int,
    after: int,
    start: int,
    proven: Proven,
    effect: float,
    without: float,
) -> Evidence | None:
    r = context.measured
    earlier = cache.restrict(context, context.state.visits[:start])
    posterior = cache.posterior(earlier, proven, effect)
    mean, sd = expected_effect(posterior, after, parent)
    mean -= without
    first_layout = first_layout_compared(context, cache, after, proven, effect)
    fresh = {v.boot for v in interleaved_boots(context, (parent, after), "certify")}
    chosen = np.array([boot in fresh for boot in r.boot]) & (r.layout >= first_layout)
    sign = math.copysign(1.0, mean)
    sides = context.comparison_sides(parent, after, chosen)
    if sides is None:
        return None
    sides = (sides[0], replace(sides[1], location=sides[1].location - without))
    spreads = context.spread_hypotheses(posterior)
    if context.goal.exact:
        # Counted instructions see no code layout. A binary spread, which further layouts could not
        # average away, would keep the comparison from ever ending.
        spreads = [replace(s, binary=0.0) for s in spreads]
    effect_prior = sequential_test.estimated_effect_prior(abs(mean), sd, context.threshold)
    found = [_in_direction(context, sides, spreads, effect_prior, sign)]
    if sign * found[0].estimate < 0:
        found.append(_in_direction(context, sides, spreads, effect_prior, -sign))
    share = EXPECTED_DIRECTION_SHARE if len(found) == 1 else 1 - EXPECTED_DIRECTION_SHARE
    return replace(found[-1], log_e_change=found[-1].log_e_change + math.log(share))


def _in_direction(
    context: SearchContext,
    sides: tuple[Side, Side],
    spreads: list[SpreadHypothesis],
    effect_prior: EffectPrior,
    sign: float,
) -> Evidence:
    """Return the evidence for an effect of this sign, whose prior is given as a positive one."""
    one, other = (replace(side, location=sign * side.location) for side in sides)
    e = context.compare(one, other, spreads, effect_prior)
    return e if sign > 0 else replace(e, estimate=-e.estimate, interval=lambda: (-e.high, -e.low))


def enough_boots(
    context: SearchContext,
    cache: PlannerCache,
    after: int,
    parents: Sequence[int],
    proven: Proven,
    effect: float,
) -> bool:
    """Return whether a suspect and its parents have the boots and layouts that a certificate needs.

    Only boots that the comparisons use count.
    """
    if not _enough_from(context, after, parents, 0):  # saves a posterior
        return False
    first = first_layout_compared(context, cache, after, proven, effect)
    return first == 0 or _enough_from(context, after, parents, first)


def _enough_from(context: SearchContext, after: int, parents: Sequence[int], first_layout: int) -> bool:
    """Return whether the boots of this code layout and of later ones are enough."""
    share = alpha_share(context, after)
    if not all(boots_support_claim(context, p, after, "certify", share, first_layout) for p in parents):
        return False
    layouts = (
        {v.layout for v in interleaved_boots(context, (p, after), "certify") if v.commit == c and v.samples}
        for p in parents
        for c in (p, after)
    )
    return not context.can_vary_layout or all(
        sum(layout >= first_layout for layout in of) >= CERTIFICATE_LAYOUTS for of in layouts
    )
