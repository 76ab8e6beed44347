"""The candidates for the next trial, the best of them with its reason, and the most probable suspect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bisector.model.decisions import Measure, Purpose
from bisector.search import skip_model
from bisector.search.acquisition import (
    RatedTrial,
    TrialOption,
    TrialRater,
    left_by_open_trials,
    spreads,
    under_way,
)
from bisector.search.cache import Proven
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.separation.fork_references import fork_references
from bisector.search.separation.inseparable import commit_measured_for, count_contained
from bisector.search.separation.splitting import (
    built_without_boot,
    commits_that_split,
    containing_probability,
    splits_likely_class,
    splits_of_likely_classes,
    tested_mask,
)

SPLIT_QUANTILES, OUTER_SPLIT_QUANTILES = (0.5, 0.35, 0.65), (0.15, 0.85)
"""New commits are considered at these quantiles of the probability mass: about the middle, and further out
where two culprits are likely."""
MIN_TRIAL_BITS = 2e-4
"""Trials that bring fewer bits are not done: an answer would take thousands of them."""
MIN_RESOLVED_BITS = 0.05
"""Bits that exact levels would bring, below which the same commits are measured again in vain. Where two
culprits on branches and one below both explain as much they bring 0.01; else 0.16 to 0.7 were seen."""
LITTLE_BITS = 0.0015
"""A trial that brings fewer bits gives way to a proof that brings more per second. Where three culprits
explain what no two do, trials of 0.0002 to 0.0012 bits went on. Where boots scatter by an effect, trials of
0.0018 bits help: a proof in their place made searches dearer."""
MAX_BUILT_NEAR_MIDDLE = 3
"""Built commits considered besides, those nearest to the middle of the mass."""
MAX_LAYOUT_COMMITS = 4
"""Built commits around the suspect for which another code layout is considered."""
DOMINANT_PRIOR_SHARE = 0.9
"""A commit with this share of its class's prior is the suspect by itself. The other commits of the class
cannot change the kernel as far as is known, and telling each of them apart would take a build."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """The most probable class, or the one commit that holds most of its prior.

    index: of the class; atomic: no testable commit splits it; after: the commit to measure for it, None if it
    is not atomic or nothing can be measured.
    """

    index: int
    commits: tuple[int, ...]
    probability: float
    atomic: bool
    after: int | None


def most_probable_suspect(
    posterior: Posterior, context: SearchContext, settled: Collection[int] = ()
) -> Suspect:
    """Return the most probable class, and whether a testable commit still splits it.

    settled: commits measured for suspects of which fresh boots prove nothing more. In place of such a one
    comes another class that is half as likely at least.
    """
    order = np.argsort(-posterior.marginal, kind="stable")
    first = _suspect(posterior, context, int(order[0]))
    if first.after not in settled:
        return first
    likely = (int(k) for k in order[1:] if posterior.marginal[k] >= posterior.marginal[order[0]] / 2)
    others = (_suspect(posterior, context, k) for k in likely)
    return next((one for one in others if one.after is not None and one.after not in settled), first)


def _suspect(posterior: Posterior, context: SearchContext, k: int) -> Suspect:
    p = posterior.design
    members = np.flatnonzero(p.classes.label == k)
    probability = float(posterior.marginal[k])
    able = context.testable_mask
    after = None
    share = context.dag.weights[members] / context.dag.weights[members].sum()
    most = int(np.argmax(share))
    if able[members[most]] and share[most] >= DOMINANT_PRIOR_SHARE:
        probability *= float(share[most])
        members = members[most : most + 1]
    if len(members) == 1:
        commit = int(members[0])
        atomic, after = True, commit if context.testable(commit) else None
    else:
        contained = count_contained(context, members.tolist())
        splits = able & (contained > 0) & (contained < len(members)) & ~tested_mask(posterior, context)
        atomic = not splits.any()
        if atomic:
            after = next((int(c) for c in members if able[c] and contained[c] == len(members)), None)
    if atomic and after is None:
        holding = p.classes.contains[k]
        above = [c for c, held in zip(p.tested, holding, strict=True) if held]
        after = commit_measured_for(context, members.tolist(), above)
    return Suspect(k, tuple(members.tolist()), probability, atomic, after)


def next_trial(
    posterior: Posterior, context: SearchContext, proven: Proven, found: Suspect, purpose: Purpose
) -> tuple[Measure, RatedTrial] | None:
    """Return the best trial and its rating; None if nothing can be measured, or the same again in vain."""
    rater = TrialRater(posterior, context.dag, context.run_cost, proven, context.testbed)
    weight = posterior.commit_probabilities(context.dag.weights)
    breakage = skip_model.estimate_breakage(context, weight)
    mass = containing_probability(context, weight)
    fresh = commits_that_split(posterior, context, mass)
    options = _options(posterior, context, found, purpose, mass, fresh, breakage.expected_yield)
    if not options:
        return None
    most = context.goal.max_runs_per_boot
    most_runs = min(most, 2) if context.exact_clock else most
    discount = _discount(rater, context, weight, breakage.expected_yield)
    rated = rater.rate_trials(options, most_runs, discount)
    if rated[0].bits < LITTLE_BITS:
        known = {option.commit for option in options}
        more = [c for c in splits_of_likely_classes(posterior, context, fresh) if c not in known]
        options += [_of_commit(context, c) for c in more]
        rated = rater.rate_trials(options, most_runs, discount) if more else rated
    # A cheap trial without information must not win against an informative one that is likely to fail.
    best = next((rating for rating in rated if rating.bits >= MIN_TRIAL_BITS), rated[0])
    # Exact levels bring more than any number of runs.
    in_vain = best.bits < MIN_RESOLVED_BITS and not splits_likely_class(posterior, fresh)
    if in_vain and rater.most_bits(options) < MIN_RESOLVED_BITS:
        return None
    runs = best.runs
    if best.option.live_precision is None and runs > 2:
        runs = -(-runs // 2)  # decide again after half of the runs: they may be enough
    measure = Measure(
        best.option.commit,
        max(1, runs),
        purpose,
        _reason(best, runs, context, posterior, float(breakage.failure_probability[best.option.commit])),
        best.option.boot,
        layout=best.option.layout,
        left=_entropy(weight) / best.bits * best.cost if best.bits >= MIN_TRIAL_BITS else None,
    )
    return measure, best


def proof_tells_more(suspect: Suspect, seconds: float | None, trial: RatedTrial) -> bool:
    """Return whether a proof brings more bits per second than a trial. seconds: it takes; None: not known.

    It decides about the suspect, so it brings the entropy of its probability.
    """
    p = suspect.probability
    decided = _entropy(np.array([p, 1 - p]))
    return seconds is not None and decided * trial.cost > trial.bits * seconds


def _entropy(weight: NDArray[np.float64]) -> float:
    """Return the entropy in bits of where a culprit is. weight: P(it is there), up to a factor."""
    share = weight / max(float(weight.sum()), 1e-300)
    share = share[share > 0]  # after the division, which can underflow
    return float(-(share * np.log2(share)).sum())


def _reason(best: RatedTrial, runs: int, context: SearchContext, posterior: Posterior, fails: float) -> str:
    """Return the reason for a trial. runs: asked for now; fails: P(a breakage seen near it holds it, too)."""
    commit = best.option.commit
    known = commit in posterior.design.tested and not built_without_boot(context, {commit})
    if best.option.layout:
        level = "slow" if context.goal.find == "regression" else "fast"
        what = f"tells from another code layout whether the commit is {level} or only its build"
    elif 0.02 < best.bad_probability < 0.98:
        what = f"splits what remains {best.bad_probability:.0%} to {1 - best.bad_probability:.0%}"
        what += ", measured before" if known else ""
    elif known:
        what = "measures a level again, as a reference"
    elif context.dag.fork_base(best.option.commit):
        what = f"measures the offset of a branch that lacks part of {context.goal.terms.old}'s history"
    else:
        what = f"measures where a {context.goal.terms.one} is unlikely"
    where = (
        "in this boot"
        if best.option.boot
        else ("already built" if best.option.built else context.goal.terms.new_build)
    )
    bring = "run brings" if best.runs == 1 else "runs bring"
    now = f", {runs} of them now" if runs < best.runs else ""
    near = (
        f"; near untestable {context.goal.unit}s, {fails:.0%} likely to be one of them"
        if fails >= 0.05
        else ""
    )
    return f"{what}; {where}; {best.runs} {bring} {best.bits:.2g} bit for {best.cost:.3g} s{now}{near}"


def _discount(
    rater: TrialRater,
    context: SearchContext,
    weight: NDArray[np.float64],
    expected_yield: NDArray[np.float64],
) -> Callable[[int], float] | None:
    """Return commit -> factor (0..1) on its information, for failures and open trials; None for no change."""
    overlap = left_by_open_trials(rater, context, weight)
    if (expected_yield == 1.0).all():
        return overlap
    return lambda commit: float(expected_yield[commit]) * (1.0 if overlap is None else overlap(commit))


def _quantiles(context: SearchContext, mass: NDArray[np.float64], *, likely_two: bool) -> tuple[float, ...]:
    """Return where new commits are considered. mass: (n,) P(the commit contains the culprit)."""
    if context.state.pending and spreads(context):  # between those that other testbeds measure
        ends = np.unique(np.clip([0.0, 1.0, *mass[under_way(context)]], 0.0, 1.0))
        widest = np.argsort(-np.diff(ends), kind="stable")[: len(SPLIT_QUANTILES)]
        return tuple(((ends[widest] + ends[widest + 1]) / 2).tolist())
    return SPLIT_QUANTILES + OUTER_SPLIT_QUANTILES * likely_two


def _options(
    posterior: Posterior,
    context: SearchContext,
    found: Suspect,
    purpose: Purpose,
    mass: NDArray[np.float64],
    fresh: NDArray[np.bool_],
    expected_yield: NDArray[np.float64],
) -> list[TrialOption]:
    """Return the trials to rate: the live boot, the ends, built commits near the middle, and new commits.

    mass: (n,) P(the commit contains the culprit); fresh: mask (n,) of the new ones that split what remains.
    """
    state = context.state
    options: list[TrialOption] = []
    live = context.live_visit(purpose)
    r = context.measured
    if live is not None and live.samples and len(live.samples) < context.goal.max_runs_per_boot:
        at = r.boot.index(live.boot) if live.boot in r.boot else None
        precision = float(r.precision[at]) if at is not None else 1e-9
        options.append(TrialOption(live.commit, live.layout, live.boot, 0.0, True, precision))
    built = {c for c, layout in state.binaries if layout == 0 and context.testable(c)}
    near = sorted(built, key=lambda c: (abs(mass[c] - 0.5), c))[:MAX_BUILT_NEAR_MIDDLE]
    known = dict.fromkeys([*near, context.graph.good, context.graph.bad])
    for commit in known:
        if context.testable(commit):
            options.append(TrialOption(commit, 0, None, context.boot_cost, True))

    def offer(commit: int) -> None:
        if all(o.commit != commit for o in options):
            options.append(_of_commit(context, commit))

    if fresh.any():
        whole = context.dag.contains_good()
        # The split must be better for a commit that lacks part of good's history (its offset is unknown) and
        # for one that is likely to fail. A commit that splits nothing gets no value.
        value = np.where(fresh, np.where(whole, 1.0, 0.5) * expected_yield, 0.0)
        likely_two = float(posterior.pair.sum()) > 0.1
        for quantile in _quantiles(context, mass, likely_two=likely_two):
            commit = int(np.argmax(value * np.minimum(mass / quantile, (1 - mass) / (1 - quantile))))
            offer(commit)
    for commit in fork_references(posterior, context, mass):
        offer(commit)
    if context.can_vary_layout and posterior.noise_rms("binary") > 0.05 * posterior.design.effect:
        options += _layout_options(context, known, found if found.probability > 0.2 else None)
    return options


def _of_commit(context: SearchContext, commit: int) -> TrialOption:
    """Return the trial of a commit by a boot of its ordinary build."""
    built = (commit, 0) in context.state.binaries
    return TrialOption(commit, 0, None, context.boot_cost if built else context.visit_cost, built)


def _layout_options(context: SearchContext, known: Iterable[int], found: Suspect | None) -> list[TrialOption]:
    """Return trials of other code layouts of some built commits, and of those around a likely suspect.

    known: the ends, which are a reference for all, and commits near the middle. Once most of these are built,
    the offsets of their binaries are all that hides the culprit.
    """
    highest: dict[int, int] = {}
    for commit, layout in context.state.binaries:
        highest[commit] = max(layout, highest.get(commit, 0))
    around: set[int] = set()
    if found is not None:
        around.update(chain.from_iterable(context.graph.parents[c] for c in found.commits))
        if found.after is not None:
            around.add(found.after)
    suspected = sorted(c for c in around & highest.keys() if context.testable(c))[:MAX_LAYOUT_COMMITS]
    commits = dict.fromkeys([*suspected, *(c for c in known if c in highest and context.testable(c))])
    return [TrialOption(commit, highest[commit] + 1, None, context.visit_cost, False) for commit in commits]
