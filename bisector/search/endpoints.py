"""The verification of the ends: whether bad is worse than good by the threshold at all."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bisector.model.decisions import Measure
from bisector.search import sequential_test
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.interleaving import (
    EXACT_CLOCK_RUNS,
    FIRST_BOOT_RUNS,
    REPEATED_BOOTS,
    SCATTER_LAYOUTS,
    boots_side_by_side,
    boots_support_claim,
    cheapest_runs_per_boot,
    fewest_boots,
    fewest_boots_without_loss,
    min_boots_per_side,
    next_interleaved,
    sufficient_runs_per_boot,
)
from bisector.search.limits.uneven_outliers import in_words, worst_outliers
from bisector.search.metric import metric_steps
from bisector.search.noise_priors import binary_spreads
from bisector.search.sequential_test import Evidence, SpreadHypothesis

ENDS_BINARY_SPREAD_PRIOR = ((0.0, 0.6), (0.25, 0.15), (0.5, 0.15), (1.0, 0.1))
"""(standard deviation between binaries / threshold, prior), where the verdict rests on two binaries only."""

MAX_PRINTED_LOG_ODDS = math.log(1e6)
"""Larger odds are printed as 'beyond a million'."""


def compare_ends(whole: SearchContext, cache: PlannerCache) -> Evidence | None:
    """Return the comparison of the two ends; None before both have a boot.

    Only boots made for this purpose count, so a verdict does not change during the search.
    """
    context = cache.restrict(whole, tuple(v for v in whole.state.visits if v.purpose == "verify"))
    good, bad = context.graph.good, context.graph.bad
    return cache.get_or_compute(("ends", context.readings_key), lambda: compare_two(context, good, bad))


def compare_two(context: SearchContext, before: int, after: int) -> Evidence | None:
    """Return the comparison of two commits by all visits of the context; None before both have a boot."""
    r = context.readings
    if r is None:
        return None
    sides = context.comparison_sides(before, after, np.ones(len(r.commit), dtype=bool))
    if sides is None:
        return None
    effect_prior = sequential_test.broad_effect_prior(context.threshold)
    plain = context.spread_hypotheses(None)
    evidence = context.compare(*sides, plain, effect_prior)
    several = bool(r.layout.any())
    # An exact clock does not see layouts: binaries differ by what the commits did.
    if context.goal.exact or (evidence.log_e_below <= 0 and evidence.high > 0 and not several):
        return evidence
    # 'Not reproduced' must not rest on two binaries whose code layouts happen to hide the loss.
    grid = binary_spreads(r, context.threshold, ENDS_BINARY_SPREAD_PRIOR)
    binaries = [SpreadHypothesis(s.boot, u, s.weight * w) for s in plain for u, w in grid]
    careful = context.compare(*sides, binaries, effect_prior)
    if several:
        return careful
    return replace(evidence, log_e_below=careful.log_e_below, interval=careful.interval)


def next_trial(context: SearchContext, evidence: Evidence | None) -> Measure:
    """Return the next trial of the verification, with its reason."""
    why, layouts, target = "verify that the ends differ", range(1), FIRST_BOOT_RUNS
    fewest = min_boots_per_side(context, "verify")
    if evidence is not None and context.readings is not None and context.readings.run_df >= 4:
        target = runs_in_a_boot(context, evidence, fewest)
    if evidence is not None:
        odds = (
            f"odds {math.exp(evidence.log_e_change):.2g}"
            if evidence.log_e_change < MAX_PRINTED_LOG_ODDS
            else "odds beyond a million"
        )
        why += f" ({odds} to 1 so far, {1 / context.alpha:.3g} wanted)"
        if evidence.log_e_below > 0.5 * math.log(1 / context.alpha):
            why, layouts = "make sure that the ends do not differ", range(SCATTER_LAYOUTS)
    if context.readings is not None and (
        words := metric_steps.in_words(context.metric_step, context.measured.scale)
    ):
        why += f"; {words}"
    names = {context.graph.good: context.goal.terms.old, context.graph.bad: context.goal.terms.new}
    return next_interleaved(context, tuple(names), "verify", target, layouts, why, names, fewest)


def runs_in_a_boot(context: SearchContext, evidence: Evidence, fewest: int) -> int:
    """Return the runs wanted in a boot to verify the difference that the ends show. fewest: boots a side."""
    likely = max(evidence.estimate, context.threshold)
    target = cheapest_runs_per_boot(context, evidence.boot_spreads)
    return min(target, sufficient_runs_per_boot(context, likely, fewest))


def ends_differ(context: SearchContext, evidence: Evidence | None) -> bool | None:
    """Return whether bad is worse than good by the threshold; None while the ends need more boots."""
    if evidence is None:
        return None
    need = math.log(1 / context.alpha)
    if not boots_support_claim(context, context.graph.good, context.graph.bad, "verify", context.alpha):
        return None
    if context.measured.run_df < 3 and not context.exact_clock:
        return None
    changed = evidence.log_e_change >= need and evidence.estimate > 0
    if changed and evidence.log_e_below < need and evidence.p_reaches_threshold > context.alpha:
        return True
    # An interval below zero does not suffice: looked at after every boot it is wrong one time in ten.
    if not (changed or evidence.log_e_below >= need) or not _enough_layouts(context):
        return None
    if context.exact_clock:
        return False if _booted(context, REPEATED_BOOTS) else None
    ends = (context.graph.good, context.graph.bad)
    fewest = min(len(context.boots(end, "verify")) for end in ends)
    if fewest < fewest_boots_without_loss(context.alpha):
        return None
    return False if worst_outliers(context).loss < context.threshold else None


def why_undecided(context: SearchContext, evidence: Evidence | None) -> str:
    """Return why more boots would not tell whether bad is worse, as sentences; '' where they may."""
    need = math.log(1 / context.alpha)
    if evidence is None or evidence.log_e_below < need or context.exact_clock:
        return ""
    outliers = worst_outliers(context)
    uneven = outliers.loss >= context.threshold and outliers.log_evidence >= need
    return in_words(context, outliers) if uneven else ""


def boots_before_claim(context: SearchContext, more: tuple[int, ...] = ()) -> Measure | None:
    """Return the trial that a claim of a change by the ends alone waits for; None for none.

    An exact clock is so by its name until two boots of one binary deny it. A search may begin by the name,
    with one boot of each end, and a certificate boots its commits twice. But what rests on the ends alone
    would never see a boot again: by one boot each, 28 of 120 comparisons of equal ends claimed a change where
    boots differed after all. So each has the boots whose order supports a claim for scatter of any shape. By
    two of each end, boots in two even modes show a loss in 6% of cases and repeat, by three in 1.6%.
    more: further commits that the claim rests on.
    """
    fewest = fewest_boots(context.alpha)
    if not context.exact_clock or _booted(context, fewest, more):
        return None
    why = "boot again before what the ends show is claimed, to see that boots repeat"
    names = dict.fromkeys(more, "the merge base")
    names = {context.graph.good: context.goal.terms.old, context.graph.bad: context.goal.terms.new, **names}
    return next_interleaved(context, tuple(names), "verify", EXACT_CLOCK_RUNS, range(1), why, names, fewest)


def search_agrees(context: SearchContext) -> bool:
    """Return whether the ends differ by all their boots, those of the search too, under an instruction clock.

    A culprit has fresh boots of its own. A loss that is spread has only those that began the search, which
    are right but for alpha; where such a clock does not repeat, that came on top of what its name let pass.
    It has no drift, so boots of any time compare.
    """
    if not context.goal.exact:
        return True
    found = compare_two(context, context.graph.good, context.graph.bad)
    return found is not None and found.log_e_change >= math.log(1 / context.alpha)


def _booted(context: SearchContext, fewest: int, more: tuple[int, ...] = ()) -> bool:
    """Return whether both ends, and more commits, have so many boots on one testbed."""
    return boots_side_by_side(context, (context.graph.good, context.graph.bad, *more), "verify") >= fewest


def _enough_layouts(context: SearchContext) -> bool:
    """Return whether each end has the binaries that 'not reproduced' must rest on."""
    ends = (context.graph.good, context.graph.bad)
    return not context.can_vary_layout or all(
        len({v.layout for v in context.boots(end, "verify")}) >= SCATTER_LAYOUTS for end in ends
    )
