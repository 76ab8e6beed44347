"""The suspect, and which trials are considered."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Measure
from bisector.model.records import Booted, Built
from bisector.search.cache import PlannerCache
from bisector.search.candidates import (
    DOMINANT_PRIOR_SHARE,
    Suspect,
    explore_largest_class,
    most_probable_suspect,
    next_trial,
)
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
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


def test_an_untestable_commit_is_never_measured() -> None:
    trial = best_trial(linear(64, untestable=dict.fromkeys(range(20, 45), "skipped")), {})
    assert trial.commit not in range(20, 45)


def test_a_scan_measures_the_middle_of_the_largest_stretch() -> None:
    context, _, posterior = searched(linear(64), {20: True})
    trial = explore_largest_class(posterior, context, 2)
    assert trial is not None
    assert trial.commit == pytest.approx(42, abs=1)
    assert "two may cancel" in trial.reason
    nothing = replace(posterior.design, prior=np.zeros_like(posterior.design.prior))
    assert explore_largest_class(replace(posterior, design=nothing), context, 2) is None


def test_a_second_testbed_does_not_measure_what_the_first_is_measuring() -> None:
    """Boots scatter by 4%, so that any quarter of the range may hold the culprit."""
    random = np.random.default_rng(1)
    visits = []
    for commit, level in [(0, 100.0), (64, 110.0)] * 4 + [(16, 105.0), (32, 105.0), (48, 105.0)]:
        runs = level + random.normal(0, 4) + random.normal(0, 0.3, 3)
        visits.append(Seen(commit, tuple(runs), "verify" if commit in (0, 64) else "search"))
    context, cache = context_of(linear(64), visits)
    posterior = cache.posterior(context, (), math.log(1.1))

    def trial(*under_way: int) -> int:
        pending = tuple(Measure(c, 2, "search", "") for c in under_way)
        asked = SearchContext(replace(context.state, pending=pending), context.dag, None)
        rated = next_trial(posterior, asked, (), most_probable_suspect(posterior, asked), "search")
        assert rated is not None
        return rated[0].commit

    assert trial(trial()) != trial()
    assert trial(0) == trial()  # what the good end reads tells nothing of where the culprit is


def test_testbeds_share_a_range_of_which_nothing_is_known_yet() -> None:
    """All suspects are one class then: the parts of it that trials under way tell apart count."""
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 64) * 3]
    context, cache = context_of(linear(64), ends)
    posterior = cache.posterior(context, (), math.log(1.1))
    under_way: list[Measure] = []
    for _ in range(3):
        asked = SearchContext(replace(context.state, pending=tuple(under_way)), context.dag, None)
        rated = next_trial(posterior, asked, (), most_probable_suspect(posterior, asked), "search")
        assert rated is not None
        under_way.append(rated[0])
    middle, *others = (trial.commit for trial in under_way)
    assert middle == pytest.approx(32, abs=1)
    assert sorted(others) == pytest.approx([21, 43], abs=3)  # the quantiles 0.35 and 0.65 are offered


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
