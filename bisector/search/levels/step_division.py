"""Divide what the choice by information leaves aside: a loss of many steps, and changes that cancel.

That choice looks for one culprit or two. Where a loss is the sum of many small changes, no commit is probable
and no trial brings information about it, however many are left. Then the step between two measured commits
that most probably reaches the threshold is divided, as in binary segmentation (Scott and Knott 1974): such a
search ends, because steps become short or well known. With --scan the largest unmeasured class is divided
until two changes that cancel are unlikely to hide in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bisector.model.dag import Ints, Mask
from bisector.model.decisions import Measure, Purpose
from bisector.model.format import count
from bisector.search import interleaving
from bisector.search.candidates import Suspect
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.levels.level_profile import Step, commits_inside, likeliest_steps
from bisector.search.posterior import Posterior
from bisector.search.separation.inseparable import inseparable_commits

STEP_SD_PER_THRESHOLD = 0.25
"""Standard deviation of a step, in thresholds, down to which it is measured before it is divided. A step
of half the threshold is then two standard deviations below it."""
MIN_WANDERING_PROBABILITY = 0.8
"""Probability of a background of changes from which a loss is divided at once. Its prior is 0.25."""
MIN_WANDERING_LOSS = 3.0
"""Loss in thresholds from which that is so. A smaller one has too few steps: one commit is the likelier
explanation, and the choice by information finds it with half of the trials."""
MAX_SUSPECT_PROBABILITY = 0.4
"""Where one class of commits is more probable, it is searched."""
MAX_SCAN_RUNS = 4
"""Runs of a commit that --scan measures between two others. If it looks suspicious, more follow."""


def levels_wander(context: SearchContext, posterior: Posterior) -> bool:
    """Return whether the loss is probably the sum of many changes, so that no suspect is worth a search."""
    return (
        posterior.noise_reaches("background", math.ulp(0.0)) >= MIN_WANDERING_PROBABILITY
        and posterior.design.effect >= MIN_WANDERING_LOSS * context.threshold
        and float(posterior.marginal.max()) < MAX_SUSPECT_PROBABILITY
    )


def next_trial(
    context: SearchContext, posterior: Posterior, purpose: Purpose, proofs: Sequence[Proof] = ()
) -> Measure | Suspect | None:
    """Return the next trial, a commit whose step may reach the threshold by itself, or None.

    proofs: steps to commits about which one has decided are left out. A step of commits that can neither be
    divided nor proven together is passed over. None where levels do not compare, and if no other step may
    reach the threshold.
    """
    known = {commit for proof in proofs for commit in proof.commits}
    for step, probability in likeliest_steps(context, posterior, known):
        trial = _trial_of(context, posterior, step, probability, purpose)
        if trial is not None:
            return trial
    return None


def _trial_of(
    context: SearchContext, posterior: Posterior, step: Step, probability: float, purpose: Purpose
) -> Measure | Suspect | None:
    """Return what measures a step better, divides it or proves it; None if nothing does."""
    commits = np.flatnonzero(commits_inside(context, step))
    text = f"{probability:.0%} likely to reach the threshold"
    wanted = STEP_SD_PER_THRESHOLD * context.threshold
    if step.sd > wanted:
        why = f"measures an end of a step of {count(len(commits), context.goal.unit)} again, {text}"
        return Measure(step.least_known, _runs(context, posterior, wanted), purpose, why)
    middle = _middle(context, posterior, step)
    if middle is None:
        return _suspect(context, posterior, step, commits, probability)
    why = f"divides a step of {count(len(commits), context.goal.unit)}, {text}"
    return Measure(middle, _runs(context, posterior, wanted), purpose, why)


def scan_largest_class(posterior: Posterior, context: SearchContext, purpose: Purpose) -> Measure | None:
    """Return a trial amid the largest class, where two culprits may cancel.

    None without --scan, where such a pair has become improbable, or if all is measured.
    """
    if not context.goal.scan:
        return None
    p = posterior.design
    fresh = _unmeasured(context, posterior)
    label = p.classes.label
    size = np.bincount(label[label >= 0], minlength=len(p.prior))
    divisible = (size > 1) & (np.bincount(label[fresh & (label >= 0)], minlength=len(p.prior)) > 0)
    if posterior.hidden_pair(divisible) <= context.alpha:
        return None
    runs = min(
        MAX_SCAN_RUNS,
        interleaving.sufficient_runs_per_boot(context, context.threshold, 2),
        context.goal.max_runs_per_boot,
    )
    for k in np.argsort(-p.prior, kind="stable").tolist():
        members = label == k
        if p.prior[k] <= 0 or not divisible[k]:
            continue
        mass = context.dag.mass(np.where(members, context.dag.weights, 0.0))
        gap = np.where(members & fresh, np.abs(mass / mass.max() - 0.5), np.inf)
        commit = int(np.argmin(gap))
        reason = (
            f"scan: nothing was measured among {count(int(members.sum()), context.goal.unit)}: two may "
            "cancel there"
        )
        return Measure(commit, runs, purpose, reason)
    return None


def _unmeasured(context: SearchContext, posterior: Posterior) -> Mask:
    """Return the mask (n,) of the testable commits that are neither measured nor under way."""
    fresh = context.testable_mask.copy()
    fresh[list(posterior.design.tested)] = False
    fresh[[m.commit for m in context.state.pending]] = False
    return fresh


def _middle(context: SearchContext, posterior: Posterior, step: Step) -> int | None:
    """Return the commit that divides the prior of a step best; None if nothing testable divides it."""
    dag, inside = context.dag, commits_inside(context, step)
    mass = dag.mass(np.where(inside, dag.weights, 0.0))
    whole = float(mass[step.after])
    fresh = inside & dag.contains_good() & _unmeasured(context, posterior)
    fresh &= (mass > 0) & (mass < whole * (1 - 1e-9))
    if not fresh.any():
        return None
    return int(np.argmin(np.where(fresh, np.abs(mass / whole - 0.5), np.inf)))


def _suspect(
    context: SearchContext, posterior: Posterior, step: Step, commits: Ints, probability: float
) -> Suspect | None:
    """Return the commits of a step as a suspect.

    None unless fresh boots can prove just these: a merge of a branch that lacks part of good's history has
    the whole branch in its step, and a proof of the merge would blame it for what the branch did.
    """
    members = tuple(int(c) for c in commits)
    label = int(posterior.design.classes.label[step.after])
    if label < 0 or members != inseparable_commits(context, step.after):
        return None
    return Suspect(label, members, probability, True, step.after)


def _runs(context: SearchContext, posterior: Posterior, wanted: float) -> int:
    """Return the runs for one boot of an end. wanted: standard deviation of a step, in worse units."""
    run_sd = context.measured.run_sd_on(context.testbed)
    enough = math.ceil(min(2 * (run_sd / wanted) ** 2, 1e6)) + 1
    return max(1, min(enough, interleaving.cheapest_runs_per_boot(context, posterior.boot_spreads)))
