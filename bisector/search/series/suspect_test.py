"""The confirmation of a suspect of a nightly series: last good against tip, by fresh interleaved boots.

The sequential test is the one that verifies the ends of a bisection (`sequential_test`). Its errors are
tighter, for a series is suspect several times a year, and nobody has asked; and it gives up sooner. Other
code layouts are not tried: what follows a confirmation is a bisection, whose certificate tries them.

The state holds two commits, good (the last good one) and bad (the tip). Only boots for the purpose 'verify'
count. The nightly boots must not be among them: those that made the suspect are the extreme ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bisector.model.dag import CommitDag
from bisector.model.decisions import Measure
from bisector.model.state import State
from bisector.search.context import SearchContext
from bisector.search.interleaving import (
    FIRST_BOOT_RUNS,
    cheapest_runs_per_boot,
    next_interleaved,
)
from bisector.search.sequential_test import Evidence, broad_effect_prior
from bisector.stats.variance_components import VarianceComponents

FALSE_CONFIRMATION_RATE = 0.01
"""Bound of P(confirmed) where nothing has changed, for one suspect (Ville 1939: an e-value reaches 1/p with
probability at most p). Ten false suspects a year, twice what was measured, then give 0.1 false alerts."""
FEWEST_BOOTS = 2
"""Of each side: the nights of the series tell how boots scatter. Where that is more than the runs in them
explain, the order of the boots must show the change, which takes at least five: C(8, 4) = 70 orders are fewer
than 1/FALSE_CONFIRMATION_RATE. Under an exact clock the second boot shows that boots repeat; one that differs
makes it a clock as any."""
FALSE_REJECTION_RATE = 0.05
"""The same bound of P(rejected) where the change is the threshold. Larger, because each factor of e costs
about four pairs of boots where the change is one boot's standard deviation."""
MAX_BOOTS_PER_SIDE = 48
"""Boots of a side after which a suspect is undecided: enough for three in four changes of one boot's standard
deviation (measured: tests/bench/series/README.md), and for nearly all of twice that. The noise model alone
would need fewer: after n pairs its log e-value is n/4, less 1 for the unknown size, and scatters by
sqrt(n/2). But where boots scatter more than the runs in them explain, the order of the boots must support
the change too (`sequential_test.Evidence`), and tells less than their values. Its value does not change how
often 'confirmed' is wrong: the bound holds whenever one stops."""

MAX_CALIBRATION_DF = 20.0
"""Degrees of freedom that the run noise of past nights counts for at most. A testbed that became noisier may
be why there is a suspect: the runs of ten new boots must outweigh what was known before."""

Outcome = Literal["confirmed", "rejected", "undecided"]


@dataclass(frozen=True, slots=True)
class SuspectVerdict:
    """The end of a confirmation. evidence: in worse units, None where a commit could not be measured."""

    outcome: Outcome
    evidence: Evidence | None
    reason: str


def next_step(
    state: State, dag: CommitDag, calibrated_noise: VarianceComponents | None = None
) -> Measure | SuspectVerdict:
    """Return the next trial of a confirmation, or its verdict. The same state always gives the same step.

    calibrated_noise: of the series, by `variance_components.components` of the boots of its nights.
    """
    noise = calibrated_noise
    if noise is not None:
        noise = replace(noise, run_df=min(noise.run_df, MAX_CALIBRATION_DF))
    context = SearchContext(replace(state, no_layouts=True), dag, noise)
    good, bad = context.graph.good, context.graph.bad
    for commit in (good, bad):
        if not context.testable(commit):
            return SuspectVerdict("undecided", None, context.state.untestable[commit])
    boots = [len(context.boots(commit, "verify")) for commit in (good, bad)]
    evidence = _compare(context)
    if evidence is not None and min(boots) >= FEWEST_BOOTS:
        outcome = _judge(context, evidence)
        if outcome is not None:
            return SuspectVerdict(outcome, evidence, f"{boots[0]} and {boots[1]} boots")
        if min(boots) >= MAX_BOOTS_PER_SIDE:
            return SuspectVerdict(
                "undecided", evidence, f"no decision after {MAX_BOOTS_PER_SIDE} boots a side"
            )
    target = FIRST_BOOT_RUNS
    if evidence is not None and context.measured.run_df >= 4:
        target = cheapest_runs_per_boot(context, evidence.boot_spreads)
    names = {good: "the last good commit", bad: "the tip"}
    return next_interleaved(
        context, (good, bad), "verify", target, (0,), "confirm that the level moved", names, FEWEST_BOOTS
    )


def _compare(context: SearchContext) -> Evidence | None:
    """Return the comparison of the two commits; None before both have a boot."""
    r = context.readings
    if r is None:
        return None
    chosen = np.array([purpose == "verify" for purpose in r.purpose])
    sides = context.comparison_sides(context.graph.good, context.graph.bad, chosen)
    if sides is None:
        return None
    prior = broad_effect_prior(context.threshold)
    return context.compare(*sides, context.spread_hypotheses(None), prior)


def _judge(context: SearchContext, evidence: Evidence) -> Outcome | None:
    """Return the outcome that the evidence allows; None while it needs more boots."""
    if context.measured.run_df < 3 and not context.exact_clock:
        return None
    if evidence.log_e_below >= -math.log(FALSE_REJECTION_RATE):
        return "rejected"
    changed = evidence.log_e_change >= -math.log(FALSE_CONFIRMATION_RATE)
    return "confirmed" if changed and evidence.estimate > 0 else None
