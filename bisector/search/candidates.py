"""Where to look next: the trials that could be done, and the best of them, with its reason in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bisector.model.format import count
from bisector.model.records import Measure, Purpose
from bisector.search import skip_model
from bisector.search.acquisition import RatedTrial, TrialOption, TrialRater
from bisector.search.cache import Proven
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior

SPLIT_QUANTILES, OUTER_SPLIT_QUANTILES = (0.5, 0.35, 0.65), (0.15, 0.85)
"""Where new commits are looked for: about the middle of the mass, further out where two are likely."""
MIN_TRIAL_BITS = 2e-4
"""A trial that brings less than this is not worth a boot: thousands would be needed for an answer."""
MAX_BUILT_NEAR_MIDDLE = 3
"""Built commits near the middle that are rated as well."""
MAX_FORK_REFERENCES = 2
"""Branches of unknown offset for which a commit is rated that would tell it."""


DOMINANT_PRIOR_SHARE = 0.9
"""One commit that holds so much of its class's prior is the suspect by itself: the others cannot change the
kernel, as far as is known, and each of them could only be told from it by a build."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """The most probable class, or the commit that is most of it. atomic: no testable commit splits it."""

    index: int
    commits: tuple[int, ...]
    probability: float
    atomic: bool
    after: int | None


def member_weights(posterior: Posterior, context: SearchContext) -> NDArray[np.float64]:
    """Return for every commit (n,) the probability that it is a culprit."""
    classes, weights = posterior.design.classes, context.dag.weights
    chosen = classes.label >= 0
    label = classes.label[chosen]
    whole = np.bincount(label, weights[chosen], minlength=len(classes.prior))
    result = np.zeros(context.dag.n)
    result[chosen] = posterior.marginal[label] * weights[chosen] / np.maximum(whole[label], 1e-300)
    return result


def most_probable_suspect(posterior: Posterior, context: SearchContext) -> Suspect:
    """Return the most probable class and whether it can still be split."""
    p = posterior.design
    k = int(np.argmax(posterior.marginal))
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
        inside = np.zeros(context.dag.n)
        inside[members] = 1.0
        mass = context.dag.mass(inside)
        splits = able & (mass > 0) & (mass < len(members)) & ~_tested_mask(posterior, context)
        atomic = not splits.any()
        if atomic:
            after = next((int(c) for c in members if able[c] and mass[c] == len(members)), None)
    if atomic and after is None:  # the set ends in commits that cannot be tested: the nearest above it
        holding = p.classes.contains[k]
        above = [c for c, held in zip(p.tested, holding, strict=True) if held and context.testable(c)]
        after = min(above, default=None)
    return Suspect(k, tuple(members.tolist()), probability, atomic, after)


def _tested_mask(posterior: Posterior, context: SearchContext) -> NDArray[np.bool_]:
    """Return the commits (n,) that have been measured, or whose binary has."""
    mask = np.zeros(context.dag.n, dtype=bool)
    mask[list(posterior.design.tested)] = True
    return mask


def next_trial(
    posterior: Posterior, context: SearchContext, proven: Proven, found: Suspect, purpose: Purpose
) -> tuple[Measure, RatedTrial] | None:
    """Return the best trial and its rating, None when nothing can be measured."""
    rater = TrialRater(posterior, context.dag, context.run_cost, proven, context.testbed)
    weight = member_weights(posterior, context)
    seen = skip_model.estimate_breakage(context, weight)
    options = _options(posterior, context, found, purpose, weight, seen.hope)
    if not options:
        return None
    most = context.goal.max_runs_per_boot
    rated = rater.best(
        options, min(most, 2) if context.exact_clock else most, _discount(rater, context, seen.hope)
    )
    # What is cheap and tells nothing must not hide what is likely to fail and would tell much.
    best = next((choice for choice in rated if choice.bits >= MIN_TRIAL_BITS), rated[0])
    runs = best.runs
    if best.option.live_precision is None and runs > 2:
        runs = -(-runs // 2)  # the boot is judged half-way: it may have said enough
    measure = Measure(
        best.option.commit,
        max(1, runs),
        purpose,
        _reason(best, runs, context, posterior, float(seen.fails[best.option.commit])),
        best.option.boot,
        layout=best.option.layout,
        left=_location_entropy(weight) / best.bits * best.cost if best.bits >= MIN_TRIAL_BITS else None,
    )
    return measure, best


def _location_entropy(weight: NDArray[np.float64]) -> float:
    """Return in bits how unsure it is where the culprit is. weight: (n,), how likely each commit is one."""
    share = weight / max(float(weight.sum()), 1e-300)
    share = share[share > 0]  # after the division, in which the smallest vanish
    return float(-(share * np.log2(share)).sum())


def explore_largest_class(posterior: Posterior, context: SearchContext, runs: int) -> Measure | None:
    """Return a look into the middle of the largest class, where two culprits may cancel unseen."""
    p = posterior.design
    fresh = context.testable_mask & ~_tested_mask(posterior, context)
    for k in np.argsort(-p.prior, kind="stable").tolist():
        members = p.classes.label == k
        if p.prior[k] <= 0 or not (members & fresh).any():
            continue
        mass = context.dag.mass(np.where(members, context.dag.weights, 0.0))
        gap = np.where(members & fresh, np.abs(mass / mass.max() - 0.5), np.inf)
        commit = int(np.argmin(gap))
        reason = (
            f"scan: nothing was measured among {count(int(members.sum()), 'commit')}, where two may cancel"
        )
        return Measure(commit, runs, "search", reason)
    return None


def _reason(best: RatedTrial, runs: int, context: SearchContext, posterior: Posterior, fails: float) -> str:
    """Return why this trial. runs: asked for now; fails: chance that it shares what broke one near it."""
    known = best.option.commit in posterior.design.tested
    if best.option.layout:
        what = "tells by another code layout whether the build or the commit is slow"
    elif 0.02 < best.chance < 0.98:
        what = f"splits what remains {best.chance:.0%} to {1 - best.chance:.0%}"
        what += ", measured before" if known else ""
    elif known:
        what = "measures a level again, as a reference"
    elif context.dag.fork_base(best.option.commit):
        what = "tells what a branch that lacks part of good's history differs by from of old"
    else:
        what = "looks where little is expected"
    where = "in this boot" if best.option.boot else ("already built" if best.option.built else "a new build")
    bring = "run brings" if best.runs == 1 else "runs bring"
    now = f", {runs} of them now" if runs < best.runs else ""
    near = f"; near commits that cannot be tested, {fails:.0%} likely one of them" if fails >= 0.05 else ""
    return f"{what}; {where}; {best.runs} {bring} {best.bits:.2g} bit for {best.cost:.3g} s{now}{near}"


def _discount(
    rater: TrialRater, context: SearchContext, hope: NDArray[np.float64]
) -> Callable[[int], float] | None:
    """Return the share of a commit's information that can be hoped for, None where it is the whole."""
    overlap = _overlap(rater, context)
    if (hope == 1.0).all():
        return overlap
    return lambda commit: float(hope[commit]) * (1.0 if overlap is None else overlap(commit))


def _overlap(rater: TrialRater, context: SearchContext) -> Callable[[int], float] | None:
    """Return how much of a commit's information is left once the trials under way are known."""
    under_way = sorted({m.commit for m in context.state.pending})
    if not under_way:
        return None
    marginal = rater.posterior.marginal
    total = max(float(marginal.sum()), 1e-12)

    def factor(commit: int) -> float:
        share = rater.shares(commit)
        p = float((marginal * share).sum()) / total
        alone = p * (1 - p)
        if alone <= 1e-9:
            return 1.0 / (1 + len(under_way))
        groups: dict[tuple[bool, ...], list[float]] = {}
        sides = np.stack([rater.shares(c) > 0.5 for c in under_way])
        for k, m in enumerate(marginal):
            g = groups.setdefault(tuple(sides[:, k].tolist()), [0.0, 0.0])
            g[0] += m / total
            g[1] += m * share[k] / total
        left = sum(g[1] * (g[0] - g[1]) / g[0] for g in groups.values() if g[0] > 1e-12)
        return float(left / alone)

    return factor


def _options(
    posterior: Posterior,
    context: SearchContext,
    found: Suspect,
    purpose: Purpose,
    weight: NDArray[np.float64],
    hope: NDArray[np.float64],
) -> list[TrialOption]:
    """Return the trials worth rating: the live boot, the ends, built commits near the middle, new commits."""
    state = context.state
    options: list[TrialOption] = []
    live = context.live_visit((purpose,))
    r = context.readings
    assert r is not None
    if live is not None and live.samples and len(live.samples) < context.goal.max_runs_per_boot:
        at = r.boot.index(live.boot) if live.boot in r.boot else None
        precision = float(r.precision[at]) if at is not None else 1e-9
        options.append(TrialOption(live.commit, live.layout, live.boot, 0.0, True, precision))
    total = float(weight.sum())
    mass = context.dag.mass(weight) / max(total, 1e-12)
    testable = context.testable_mask
    built = {c for c, layout in state.binaries if layout == 0 and context.testable(c)}
    near = sorted(built, key=lambda c: (abs(mass[c] - 0.5), c))[:MAX_BUILT_NEAR_MIDDLE]
    for commit in dict.fromkeys([*near, context.graph.good, context.graph.bad]):
        if context.testable(commit):
            options.append(TrialOption(commit, 0, None, context.boot_cost, True))
    fresh = testable & ~_tested_mask(posterior, context)
    fresh[list(built)] = False
    fresh &= (mass > 1e-6) & (mass < 1 - 1e-6)  # what all or none of the suspects lie below splits nothing

    def offer(commit: int) -> None:
        if all(o.commit != commit for o in options):
            cost = context.boot_cost if commit in built else context.visit_cost
            options.append(TrialOption(commit, 0, None, cost, commit in built))

    if fresh.any():
        whole = context.dag.contains_good()
        # A commit that lacks part of good's history has an unknown offset: it must split better to be taken,
        # and so must one that is likely to fail. What splits nothing has no worth at all.
        worth = np.where(fresh, np.where(whole, 1.0, 0.5) * hope, 0.0)
        likely_two = float(posterior.pair.sum()) > 0.1
        for quantile in (SPLIT_QUANTILES + OUTER_SPLIT_QUANTILES * likely_two) if total else ():
            commit = int(np.argmax(worth * np.minimum(mass / quantile, (1 - mass) / (1 - quantile))))
            offer(commit)
    for commit in _fork_references(posterior, context, mass):
        offer(commit)
    if (
        context.can_vary_layout
        and found.probability > 0.2
        and posterior.noise_rms("unit") > 0.05 * posterior.design.effect
    ):
        options += _layouts(context, found)
    return options


def _fork_references(posterior: Posterior, context: SearchContext, mass: NDArray[np.float64]) -> list[int]:
    """Return commits to measure for the offset that branches have which lack part of good's history.

    Such a commit tells nothing about what it contains, but without it a culprit on the branch and one in the
    merge that brings it read alike. One for each branch of a measured commit that may hold the culprit; mass:
    (n,) probability that a commit contains it.
    """
    p, dag = posterior.design, context.dag
    off = {p.tested[c] for c, fork in zip(p.commit.tolist(), p.fork.tolist(), strict=True) if fork}
    unsure = sorted((abs(mass[c] - 0.5), c) for c in off if 0.02 < mass[c] < 0.98)
    found: dict[bytes, int] = {}
    for _, commit in unsure:
        base = dag.fork_base(commit)
        if base in found or len(found) == MAX_FORK_REFERENCES:
            continue
        below = np.flatnonzero(dag.ancestors_of_same_base(commit) & context.testable_mask)
        least = below[mass[below] <= mass[below].min() + 1e-6]
        found[base] = int(least[-1])  # the nearest: its kernel differs least from what is built
    fresh = (commit for commit in found.values() if commit not in p.tested)
    return [commit for commit in fresh if dag.fork_base(commit) in found]


def _layouts(context: SearchContext, found: Suspect) -> list[TrialOption]:
    """Return other code layouts of the built commits around the suspect, where binaries scatter."""
    highest: dict[int, int] = {}
    for commit, layout in context.state.binaries:
        highest[commit] = max(layout, highest.get(commit, 0))
    around = set(chain.from_iterable(context.graph.parents[c] for c in found.commits))
    if found.after is not None:
        around.add(found.after)
    near = sorted(c for c in around & highest.keys() if context.testable(c))[:4]
    return [TrialOption(commit, highest[commit] + 1, None, context.visit_cost, False) for commit in near]
