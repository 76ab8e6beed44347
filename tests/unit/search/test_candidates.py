"""The suspect, and which trials are considered."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Measure
from bisector.model.records import Booted, Built
from bisector.search import candidates, skip_model
from bisector.search.acquisition import RatedTrial, TrialOption, TrialRater, left_by_open_trials
from bisector.search.cache import PlannerCache
from bisector.search.candidates import (
    DOMINANT_PRIOR_SHARE,
    Suspect,
    most_probable_suspect,
    next_trial,
)
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.separation.splitting import commits_that_split, containing_probability
from tests.support.searching import Seen, context_of, linear

GOOD, BAD = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9)


def searched(graph: CommitGraph, levels: dict[int, bool]) -> tuple[SearchContext, PlannerCache, Posterior]:
    """Return what is known after three boots of each end, and one of each commit (True: it reads bad)."""
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, graph.bad) * 3]
    visits = [*ends, *(Seen(c, BAD if bad else GOOD) for c, bad in levels.items())]
    context, cache = context_of(graph, visits)
    return context, cache, cache.posterior(context, (), math.log(1.1))


def suspected(graph: CommitGraph, levels: dict[int, bool]) -> Suspect:
    context, _, posterior = searched(graph, levels)
    return most_probable_suspect(posterior, context)


def test_one_commit_between_good_and_bad_is_the_suspect() -> None:
    found = suspected(linear(16), {8: False, 9: True})
    assert (found.commits, found.atomic, found.after) == ((9,), True, 9)
    assert found.probability > 0.9


def test_a_class_that_a_trial_splits_is_not_atomic() -> None:
    found = suspected(linear(16), {8: False, 12: True})
    assert (found.commits, found.atomic, found.after) == ((9, 10, 11, 12), False, None)


def test_a_class_of_untestable_commits_is_measured_by_its_newest_testable_one() -> None:
    found = suspected(linear(16, untestable=dict.fromkeys((9, 10, 11), "skipped")), {8: False, 12: True})
    assert (found.commits, found.atomic, found.after) == ((9, 10, 11, 12), True, 12)


@pytest.mark.parametrize("untestable", [(9, 10, 11, 12), (12,)])
def test_a_class_whose_newest_commit_cannot_be_measured_any_more_is_measured_above_it(
    untestable: tuple[int, ...],
) -> None:
    """After `mark 12 skip`: without it the culprit could never be proven."""
    graph = linear(16, untestable=dict.fromkeys(untestable, "skipped"))
    levels = {8: False, 12: True, 13: True} | ({11: False} if len(untestable) == 1 else {})
    found = suspected(graph, levels)
    assert (found.commits, found.atomic, found.after) == (untestable, True, 13)


@pytest.mark.parametrize("weight", [1e-4, 0.02, 0.05, 1.0])
def test_a_commit_is_suspected_alone_only_if_it_holds_nine_tenths_of_the_prior(weight: float) -> None:
    """The three others cannot change the kernel as far as is known; with some weight they stay suspects."""
    share = 1 / (1 + 3 * weight)
    found = suspected(linear(16, weights=dict.fromkeys((9, 10, 12), weight)), {8: False, 12: True})
    assert (found.commits == (11,)) == (share >= DOMINANT_PRIOR_SHARE)
    assert found.atomic == (share >= DOMINANT_PRIOR_SHARE)
    if found.atomic:
        assert 0.9 * share < found.probability <= share


def test_an_untestable_commit_is_not_suspected_alone_whatever_it_holds() -> None:
    graph = linear(16, weights=dict.fromkeys((9, 10, 12), 1e-4), untestable={11: "skipped"})
    found = suspected(graph, {8: False, 12: True})
    assert found.commits == (9, 10, 11, 12)


def test_weights_of_members_sum_to_the_probability_of_their_class() -> None:
    context, _, posterior = searched(linear(16, weights={3: 0.5}), {8: False})
    weight = posterior.commit_probabilities(context.dag.weights)
    assert weight.sum() == pytest.approx(posterior.marginal.sum())
    assert weight[3] == pytest.approx(weight[4] / 2)
    assert weight[0] == 0.0


def best_trial(graph: CommitGraph, levels: dict[int, bool]) -> Measure:
    context, _, posterior = searched(graph, levels)
    rated = next_trial(posterior, context, (), most_probable_suspect(posterior, context), "search")
    assert rated is not None
    return rated[0]


def test_the_middle_of_what_remains_is_measured() -> None:
    trial = best_trial(linear(64), {32: True})
    assert 12 <= trial.commit <= 20
    assert "splits what remains" in trial.reason
    assert "a new build" in trial.reason


def test_of_many_built_commits_the_one_that_splits_what_remains_is_measured() -> None:
    graph = linear(64)
    builds = [Built(c, True, 20.0, f"k{c}") for c in range(65)]
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3]
    context, cache = context_of(graph, ends, records=builds)
    posterior = cache.posterior(context, (), math.log(1.1))
    rated = next_trial(posterior, context, (), most_probable_suspect(posterior, context), "search")
    assert rated is not None
    assert rated[0].commit == pytest.approx(32, abs=1)
    assert "already built" in rated[0].reason


def test_a_commit_that_is_built_and_whose_boot_does_not_count_is_measured() -> None:
    """Two steps of two commits each. What is left to measure is built; all else lies between the steps."""
    steps = [
        Seen(c, tuple(1.07 ** ((c > 4) + (c > 11)) * y for y in GOOD)) for c in range(17) if c not in (4, 11)
    ]
    builds = [Built(c, True, 20.0, f"k{c}") for c in range(17)]

    def trial(*pending: Measure) -> Measure:
        ends = [Seen(0, GOOD, "verify"), replace(steps[-1], purpose="verify")] * 2
        context, cache = context_of(linear(16), [*ends, *steps], records=builds)
        context = SearchContext(replace(context.state, pending=pending), context.dag, None)
        posterior = cache.posterior(context, (), math.log(1.14))
        assert posterior.pair.max() > 0.2, "two culprits are seen"
        rated = next_trial(posterior, context, (), most_probable_suspect(posterior, context), "search")
        assert rated is not None
        return rated[0]

    found = trial()
    assert found.commit in (4, 11)
    assert "already built" in found.reason
    assert "measured before" not in found.reason
    assert {found.commit, trial(found).commit} == {4, 11}


def test_an_untestable_commit_is_never_measured() -> None:
    trial = best_trial(linear(64, untestable=dict.fromkeys(range(20, 45), "skipped")), {})
    assert trial.commit not in range(20, 45)


def scattered() -> tuple[SearchContext, PlannerCache]:
    """Return boots that scatter by 4%, so that any quarter of the range may hold the culprit."""
    random = np.random.default_rng(6)
    visits = []
    for commit, level in [(0, 100.0), (64, 110.0)] * 4 + [(16, 105.0), (32, 105.0), (48, 105.0)]:
        runs = level + random.normal(0, 4) + random.normal(0, 0.3, 3)
        visits.append(Seen(commit, tuple(runs), "verify" if commit in (0, 64) else "search"))
    return context_of(linear(64), visits)


def test_a_second_testbed_does_not_measure_what_the_first_is_measuring() -> None:
    context, cache = scattered()
    posterior = cache.posterior(context, (), math.log(1.1))

    def trial(*under_way: int) -> int:
        pending = tuple(Measure(c, 2, "search", "") for c in under_way)
        asked = SearchContext(replace(context.state, pending=pending), context.dag, None)
        rated = next_trial(posterior, asked, (), most_probable_suspect(posterior, asked), "search")
        assert rated is not None
        return rated[0].commit

    assert trial(trial()) != trial()
    assert trial(0) == trial()  # what the good end reads tells nothing of where the culprit is


def test_an_untestable_commit_that_was_built_is_no_candidate() -> None:
    graph = linear(64)
    broken = [Built(c, True, 20.0, f"k{c}") for c in range(28, 37)]
    context, cache = context_of(
        graph,
        [Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3],
        records=[
            *broken,
            *(Booted(f"x{c}", c, "t", False, 5.0, 0.0, failure="panic") for c in range(28, 37)),
        ],
    )
    posterior = cache.posterior(context, (), math.log(1.1))
    rated = next_trial(posterior, context, (), most_probable_suspect(posterior, context), "search")
    assert rated is not None
    assert rated[0].commit not in range(28, 37)
    assert "a new build" in rated[0].reason


@pytest.mark.parametrize(("first", "last", "near"), [(30, 34, True), (32, 31, False)])
def test_a_reason_warns_where_the_commit_may_be_as_broken_as_its_neighbours(
    first: int, last: int, near: bool
) -> None:
    """Whoever watches sees why a trial far from the middle was chosen, and that it may fail."""
    broken = range(first, last + 1)
    context, cache = context_of(
        linear(64),
        [*(Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3), Seen(19), Seen(45, BAD)],
        records=[Booted(f"x{c}", c, "t", False, 5.0, 0.0, failure="panic") for c in broken],
    )
    posterior = cache.posterior(context, (), math.log(1.1))
    weight = posterior.commit_probabilities(context.dag.weights)
    rated = next_trial(posterior, context, (), most_probable_suspect(posterior, context), "search")
    assert rated is not None
    measure, _ = rated
    fails = skip_model.estimate_breakage(context, weight).failure_probability[measure.commit]
    assert (f"near untestable commits, {fails:.0%} likely" in measure.reason) == (fails >= 0.05)
    assert ("near untestable" in measure.reason) == near


def test_what_several_testbeds_measure_that_tells_no_side_is_worth_less_each_time() -> None:
    """Else all testbeds of a lab measure the good end at once, which one of them would do."""
    context, cache = scattered()
    posterior = cache.posterior(context, (), math.log(1.1))
    rater = TrialRater(posterior, context.dag, context.run_cost)

    weight = posterior.commit_probabilities(context.dag.weights)

    def left(commit: int, *under_way: int) -> float:
        pending = tuple(Measure(c, 2, "search", "") for c in under_way)
        asked = SearchContext(replace(context.state, pending=pending), context.dag, None)
        factor = left_by_open_trials(rater, asked, weight)
        assert factor is not None
        return factor(commit)

    assert left(0, 0) == pytest.approx(1 / 2)
    assert left(0, 16, 0, 64) == pytest.approx(1 / 4)
    assert left(32, 0) == pytest.approx(1.0)
    assert left(32, 32) == pytest.approx(0.0), "the same trial again"
    assert left(32, 16, 48) < 0.7 * left(32, 16), "both neighbours tell more than one"
    assert left_by_open_trials(rater, context, weight) is None


def test_a_range_of_which_nothing_is_known_is_measured_in_its_middle_by_all() -> None:
    """One class holds all suspects then. Each other commit would want a build of its own."""
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3]
    context, cache = context_of(linear(64), ends)
    posterior = cache.posterior(context, (), math.log(1.1))
    rater = TrialRater(posterior, context.dag, context.run_cost)
    asked = replace(context.state, pending=(Measure(32, 2, "search", ""),))
    weight = posterior.commit_probabilities(context.dag.weights)
    factor = left_by_open_trials(rater, SearchContext(asked, context.dag, None), weight)
    assert factor is not None
    assert factor(32) == pytest.approx(1.0)


def test_where_builds_cost_no_more_than_boots_several_testbeds_split_a_range_evenly() -> None:
    """Seven of them measure it at every eighth then, which takes a third of the steps."""
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3]
    quick = [Built(0, True, 0.0, "k0.0")] * 20
    context, cache = context_of(linear(64), ends, records=quick)
    posterior = cache.posterior(context, (), math.log(1.1))
    found: list[int] = []
    for _ in range(7):
        pending = tuple(Measure(c, 1, "search", "") for c in found)
        asked = SearchContext(replace(context.state, pending=pending), context.dag, None)
        rated = next_trial(posterior, asked, (), most_probable_suspect(posterior, asked), "search")
        assert rated is not None
        found.append(rated[0].commit)
    assert sorted(found) == pytest.approx([8, 16, 24, 32, 40, 48, 56], abs=1)


def _offered(
    posterior: Posterior, context: SearchContext, found: Suspect, weight: NDArray[np.float64]
) -> list[TrialOption]:
    mass = containing_probability(context, weight)
    fresh = commits_that_split(posterior, context, mass)
    return candidates._options(posterior, context, found, "search", mass, fresh, np.ones(context.dag.n))


def test_a_commit_built_in_another_layout_only_is_not_called_built() -> None:
    """A trial of it takes a build of minutes, which must be among its costs."""
    visits = [
        *(Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3),
        Seen(30),
        Seen(40, BAD, "search", 1),
    ]
    context, cache = context_of(linear(64), visits)
    posterior = cache.posterior(context, (), math.log(1.1))
    weight = posterior.commit_probabilities(context.dag.weights)
    found = most_probable_suspect(posterior, context)
    options = _offered(posterior, context, found, weight)
    built = {o.commit for o in options if o.built}
    assert 30 in built
    assert 40 not in built
    new = [o for o in options if not o.built]
    assert new
    assert all(o.setup_seconds == context.visit_cost for o in new)
    assert all(o.setup_seconds == context.boot_cost for o in options if o.built)
    assert all(30 < o.commit < 40 for o in new if not o.layout), "a commit beyond what remains splits nothing"


@pytest.mark.parametrize("probability", [0.1, 0.9])
def test_where_binaries_scatter_other_binaries_of_the_ends_and_of_the_middle_are_considered(
    probability: float,
) -> None:
    """When most commits near the middle are built, boots of the same binaries tell nothing more."""
    levels = {5: 100.0, 6: 106.0, 7: 101.0, 8: 104.0, 9: 108.0, 10: 103.0, 11: 112.0}
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 3]
    for commit, level in levels.items():
        visits += [
            Seen(commit, (level, level + 0.1)),
            Seen(commit, (210 - level, 210.1 - level), "search", 1),
        ]
    context, cache = context_of(linear(16), visits)
    posterior = cache.posterior(context, (), math.log(1.1))
    assert posterior.noise_rms("binary") > 0.2 * posterior.design.effect
    weight = posterior.commit_probabilities(context.dag.weights)
    found = replace(most_probable_suspect(posterior, context), commits=(6,), after=6, probability=probability)
    offered = _offered(posterior, context, found, weight)
    others = {o.commit: o for o in offered if o.layout}
    mass = np.cumsum(weight) / weight.sum()
    near = sorted(levels, key=lambda c: (abs(mass[c] - 0.5), c))[: candidates.MAX_BUILT_NEAR_MIDDLE]
    around = {5, 6} if probability > 0.2 else set()
    assert set(others) == {0, 16, *near} | around
    assert {c: o.layout for c, o in others.items()} == {c: 2 if c in levels else 1 for c in others}
    assert not any(o.built for o in others.values())
    lost = replace(context.state, untestable={0: "skipped"})
    asked = SearchContext(lost, context.dag, None)
    assert 0 not in {o.commit for o in candidates._layout_options(asked, [0, 16, 3], None)}
    assert 3 not in {o.commit for o in candidates._layout_options(context, [0, 16, 3], None)}, "not built"


def test_a_proof_tells_more_than_a_trial_by_the_entropy_of_the_suspect_per_second() -> None:
    def more(probability: float, seconds: float | None, bits: float, cost: float) -> bool:
        suspect = candidates.Suspect(0, (3,), probability, True, 3)
        trial = RatedTrial(TrialOption(3, 0, None, 5.0, True), 1, bits, cost, 0.5)
        return candidates.proof_tells_more(suspect, seconds, trial)

    assert more(0.5, 100.0, 0.009, 1.0)  # one bit in 100 s
    assert not more(0.5, 100.0, 0.011, 1.0)
    assert more(0.5, 100.0, 0.011, 1.2)
    assert not more(0.5, None, 0.001, 1.0)
    assert not more(0.95, 100.0, 0.0029, 1.0)  # 0.286 bits
    assert more(0.95, 100.0, 0.0028, 1.0)
