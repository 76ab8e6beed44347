"""The probabilities that are stated of suspects: of commits that no fresh boots have proven.

The posterior takes boots for normal, as far as they have scattered. Where boots have modes, and all so far
were in one, it is as good as certain after one boot of each neighbour, though a slow boot of the wrong commit
may be all of its evidence. So what is stated leaves room for modes that no repeated boot has shown yet, and
for noise that no hypothesis holds, the more once suspects have failed. It decides nothing. A proven culprit
needs no such room: its proof takes boots for exchangeable, and no more.
"""

from __future__ import annotations

import numpy as np

from bisector.search.cache import PlannerCache, Proven
from bisector.search.certainty.culprit_probability import culprit_probability, passing_probability
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.separation.inseparable import nearest_testable_parents

MIN_NAMED_PROBABILITY = 0.01
"""Least probability of a suspect that a decision names: a hundred at most."""
MIN_AVERAGED_PROBABILITY = 0.9
"""From here on what a decision states of its suspect is averaged over all noise hypotheses. By the six that
choose trials 27 of 31 such statements came true, averaged 14 of 14 (186 searches with modes of boots, tails,
outliers and runs that follow each other)."""
MODES_PROBABILITY = 0.2
"""Prior probability that boots have modes. In `tests/bench/search/pools` 3 of 30 programs and clocks show two
(`calmer.npz`), and by processor time 11 of 15 programs have a start that lies apart (`shared.npz`)."""
OTHER_NOISE_PROBABILITY = 0.2
"""Prior probability that noise is of a kind that no hypothesis holds. In `calibration` 5 of 24 cells have
such: those of `OTHER_NOISE_FAILURES`."""
OTHER_NOISE_FAILURES = 1 / 3
"""Part of the suspects that fail there: of those stated at 0.8 and more 49 of 142, where runs follow each
other, boots have three modes, boots or the background scatter by an effect, or binaries by half of one."""
FAILURES = 1 / 9
"""The same in the 19 other cells: 86 of 738."""


def stated_probability(
    context: SearchContext,
    cache: PlannerCache,
    commits: tuple[int, ...],
    probability: float,
    proven: Proven,
    effect: float,
) -> float:
    """Return the probability (0..1) to state of a suspect while the search goes on.

    commits: that no test tells apart; probability: by the noise hypotheses that choose trials; proven,
    effect: as in `culprit_probability`.
    """
    if probability >= MIN_AVERAGED_PROBABILITY:
        probability = min(probability, passing_probability(context, cache, commits, proven, effect))
    return _with_other_noise(context, commits, proven, probability)


def suspect_probability(
    context: SearchContext, cache: PlannerCache, commits: tuple[int, ...], proven: Proven, effect: float
) -> float:
    """Return the probability (0..1) to state of a suspect at the end of a search, by all noise hypotheses."""
    probability = culprit_probability(context, cache, commits, proven, effect)
    return _with_other_noise(context, commits, proven, probability)


def set_probability(
    context: SearchContext, cache: PlannerCache, commits: tuple[int, ...], proven: Proven, effect: float
) -> float:
    """Return the probability (0..1) that one of the commits is a culprit, with room for unseen modes alone.

    Those that other noise makes suspects lie near the culprit, in the same set mostly.
    """
    return min(1 - unseen_modes(context), culprit_probability(context, cache, commits, proven, effect))


def _with_other_noise(
    context: SearchContext, commits: tuple[int, ...], proven: Proven, probability: float
) -> float:
    """Return a suspect's probability, with room for unseen modes and for noise that no hypothesis holds.

    With such noise no suspect is likelier than those are right there (law of total probability).
    """
    right_there = 1 - OTHER_NOISE_FAILURES
    if probability <= right_there:  # all but one at most of a hundred suspects of a decision
        return probability
    here = min(probability, 1 - unseen_modes(context))
    return here - other_noise(context, commits, proven) * (here - right_there)


def other_noise(context: SearchContext, commits: tuple[int, ...], proven: Proven) -> float:
    """Return the probability (0..1) that noise is of a kind that no hypothesis holds.

    Each failed suspect multiplies its odds by how much more often suspects fail there (Bayes' rule). Boots
    with heavy tails count like one: their distances are taken at one expected value each, which is known to
    make posteriors too sure (Turner and Sahani 2011); of 14 such suspects, stated at 0.85 and more, 8 were
    right. 0 where the clock is exact.
    """
    if context.exact_clock:
        return 0.0
    doubts = len(failed_suspects(context, commits, proven))
    if context.readings is not None and context.readings.tails is not None:
        doubts += 1
    odds = OTHER_NOISE_PROBABILITY / (1 - OTHER_NOISE_PROBABILITY)
    odds *= (OTHER_NOISE_FAILURES / FAILURES) ** doubts
    return odds / (1 + odds)


def failed_suspects(context: SearchContext, commits: tuple[int, ...], proven: Proven) -> tuple[int, ...]:
    """Return a commit for each suspect, beside these, that had fresh boots and was not proven.

    It is the suspect or, where only the parent has been booted before the search turned away, that.
    """
    fresh = set(context.booted("certify"))
    known = {c for some in proven for c in some}.union(commits)
    below = {c: set(nearest_testable_parents(context, (c,))) for c in fresh | known}
    parents = set().union(*below.values())
    return tuple(sorted(c for c in fresh - known if c not in parents or below[c] & fresh))


def unseen_modes(context: SearchContext) -> float:
    """Return the probability (0..1) that boots have modes, if none that repeats a commit has shown it.

    Where the second mode has the share q, n repeated boots miss it with the probability (1 - q)^n; with q
    evenly between 0 and 1/2 that is 2 (1 - 2^-(n + 1)) / (n + 1), and Bayes' rule gives the rest. 0 where the
    clock is exact.
    """
    if context.exact_clock or (r := context.readings) is None:
        return 0.0
    repeated = len(r.commit) - len(np.unique(np.stack([r.commit, r.testbed]), axis=1).T)
    missed = 2 * (1 - 0.5 ** (repeated + 1)) / (repeated + 1)
    return MODES_PROBABILITY * missed / (MODES_PROBABILITY * missed + 1 - MODES_PROBABILITY)


def stated_suspects(
    context: SearchContext, cache: PlannerCache, posterior: Posterior, proven: Proven, effect: float
) -> tuple[tuple[int, float], ...]:
    """Return the most probable commits with their probabilities to state, by falling probability."""
    shares = posterior.commit_probabilities(context.dag.weights)
    likely = sorted(np.flatnonzero(shares >= MIN_NAMED_PROBABILITY).tolist(), key=lambda c: -shares[c])
    return tuple(
        (c, stated_probability(context, cache, (c,), float(shares[c]), proven, effect)) for c in likely
    )
