"""Levels along history: relative to good, by steps, and how many steps may reach the threshold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, Metric, Threshold
from bisector.search.context import SearchContext
from bisector.search.levels.level_profile import (
    commits_inside,
    expected_steps_reaching_threshold,
    largest_steps,
    level_steps,
    likeliest_steps,
    measured_levels,
    relative_levels,
)
from bisector.search.posterior import Posterior
from tests.support.searching import Seen, context_of, linear, seen_on_unequal_testbeds


def profile(graph: CommitGraph, levels: dict[int, float]) -> tuple[SearchContext, Posterior]:
    visits = [Seen(c, (y, y + 0.05, y - 0.05)) for c, y in levels.items() for _ in range(3)]
    context, cache = context_of(graph, visits)
    return context, cache.posterior(context, (), 0.1)


LEVELS = {0: 100.0, 10: 104.0, 20: 103.0, 30: 110.0}


def test_levels_are_relative_to_good_in_the_order_of_history() -> None:
    context, posterior = profile(linear(30), {c: LEVELS[c] for c in (30, 0, 20, 10)})
    assert [c for c, _ in relative_levels(context, posterior)] == [0, 10, 20, 30]
    for (_, found), level in zip(relative_levels(context, posterior), LEVELS.values(), strict=True):
        assert found.estimate == pytest.approx(level / 100 - 1, abs=2e-3)
        assert found.low < found.estimate < found.high
    assert all(x.sd > 0 for x in measured_levels(context, posterior))


def test_no_measured_commit_is_missing_whatever_the_unit() -> None:
    """In nanoseconds a level is known to thousands only, and yet it is known."""
    metric = Metric("real", "ns", "lower", Threshold(5e4, relative=False))
    visits = [Seen(c, (y, y + 5e2, y - 5e2)) for c, y in ((0, 1e6), (10, 1.04e6), (30, 1.1e6))] * 2
    context, cache = context_of(linear(30), visits, wanted=Goal(metric))
    levels = measured_levels(context, cache.posterior(context, (), 1e5))
    assert [x.commit for x in levels] == [0, 10, 30]
    assert [x.level for x in levels] == pytest.approx([0.0, 4e4, 1e5], abs=2e3)


def test_steps_lead_from_each_commit_to_its_newest_measured_ancestor() -> None:
    context, posterior = profile(linear(30), LEVELS)
    found = [(s.before, s.after) for s in level_steps(context, posterior)]
    assert found == [(0, 10), (10, 20), (20, 30)]
    largest = largest_steps(context, posterior)
    assert [count for count, _ in largest] == [10, 10]  # a step to the better is none
    assert largest[0][1].estimate == pytest.approx(110 / 103 - 1, abs=2e-3)
    assert len(largest_steps(context, posterior, 1)) == 1


def test_the_step_of_a_merge_is_the_smallest_from_one_of_its_branches() -> None:
    """Commits 1 and 2 are one branch, 3 and 4 the other, 5 merges them: what 2 lost is no step of 5."""
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(6)),
        ((), (0,), (1,), (0,), (3,), (2, 4)),
        (False, True, True, True, True, True),
        0,
        5,
    )
    context, posterior = profile(graph, {0: 100.0, 2: 109.0, 4: 100.2, 5: 109.1})
    steps = {(s.before, s.after): s.change for s in level_steps(context, posterior)}
    assert set(steps) == {(0, 2), (0, 4), (2, 5)}
    assert steps[2, 5] == pytest.approx(math.log(109.1 / 109) - math.log(100.2 / 100), abs=1e-4)


def test_a_merge_of_two_branches_that_lose_is_no_step_of_what_they_lose() -> None:
    """Commits 1 to 4 and 5 to 8 are branches from good that lose 2% with each commit; 9 merges them."""
    parents = ((), (0,), (1,), (2,), (3,), (0,), (5,), (6,), (7,), (4, 8))
    graph = CommitGraph(tuple(f"{i:040x}" for i in range(10)), parents, (False, *[True] * 9), 0, 9)
    levels = {c: 100 * 1.02 ** (c - 4 * (c > 4)) for c in range(9)} | {9: 100 * 1.02**8}
    for measured in (range(10), (0, 4, 8, 9)):
        context, posterior = profile(graph, {c: levels[c] for c in measured})
        *others, merge = level_steps(context, posterior)
        assert merge.change == pytest.approx(0.0, abs=1e-4)
        assert np.flatnonzero(commits_inside(context, merge)).tolist() == [9]
        lost = math.log(1.02) * (1 if len(measured) == 10 else 4)
        assert [s.change for s in others] == pytest.approx([lost] * len(others), abs=1e-4)
        own = measured_levels(context, posterior)[0].sd
        assert merge.sd == pytest.approx(2 * own, rel=0.1)  # of the merge, two branches, and good


def test_what_branches_share_above_the_others_is_subtracted_once() -> None:
    """Commit 1 loses 3% beside 2, which loses 4.5%; 3 and 4 lose 1% each above 1; 5 merges 2, 3 and 4."""
    parents = ((), (0,), (0,), (1,), (1,), (2, 3, 4))
    graph = CommitGraph(tuple(f"{i:040x}" for i in range(6)), parents, (False, *[True] * 5), 0, 5)
    levels = {0: 0, 1: 3, 2: 4.5, 3: 4, 4: 4, 5: 9.5}
    context, posterior = profile(graph, {c: 100 * math.exp(y / 100) for c, y in levels.items()})
    merge = level_steps(context, posterior)[-1]
    assert (merge.before, set(merge.beside)) == (2, {3, 4})
    assert merge.change == pytest.approx(0.0, abs=1e-4)


def test_a_commit_that_became_untestable_ends_no_step() -> None:
    context, posterior = profile(linear(30), LEVELS)
    state = replace(context.state, untestable={20: "skipped by you"})
    steps = level_steps(SearchContext(state, context.dag), posterior)
    assert [(s.before, s.after) for s in steps] == [(0, 10), (10, 30)]


def test_levels_of_testbeds_are_no_steps() -> None:
    """Commit 15 is half of the way, and was measured on the slower testbed only."""
    seen = [(0, 100.0, "a"), (30, 110.0, "a"), (0, 130.0, "b"), (30, 143.0, "b"), (15, 136.5, "b")]
    visits = [Seen(c, (y, y + 0.05, y - 0.05), testbed=name) for c, y, name in seen for _ in range(3)]
    context, cache = context_of(linear(30), visits)
    steps = level_steps(context, cache.posterior(context, (), 0.1))
    assert [s.change for s in steps] == pytest.approx([math.log(1.05), math.log(1.1 / 1.05)], abs=3e-3)


def test_the_step_between_two_testbeds_has_the_uncertainty_of_the_gap_between_them() -> None:
    """Only the ends link the testbeds, with one boot each; 10 and 20 have two boots on one of them."""
    seen = [(0, "a"), (30, "a"), (0, "b"), (30, "b"), (10, "a"), (10, "a"), (20, "b"), (20, "b")]
    visits = [Seen(c, (100.0, 100.5, 99.5), testbed=name) for c, name in seen]
    visits.append(Seen(5, testbed="alone"))
    context, cache = context_of(linear(30), visits)
    posterior = cache.posterior(context, (), 0.1)
    r = context.measured
    variance = (posterior.noise_rms("boot") * r.noise.boot[r.testbed]) ** 2 + 1 / r.precision
    good_a, bad_a, good_b, bad_b, *inner, _ = variance.tolist()
    gap = 1 / (1 / (good_a + good_b) + 1 / (bad_a + bad_b))
    one, other = (1 / (1 / x + 1 / y) for x, y in (inner[:2], inner[2:]))
    steps = {(s.before, s.after): s for s in level_steps(context, posterior)}
    assert set(steps) == {(0, 10), (10, 20), (20, 30)}  # nothing links 5 with good
    assert steps[10, 20].sd == pytest.approx(math.sqrt(one + other + gap))
    levels = {x.commit: x for x in measured_levels(context, posterior)}
    share = (1 / good_b) / (1 / good_a + 1 / good_b)
    assert levels[10].sd == pytest.approx(math.sqrt(one + share**2 * gap))
    assert levels[0].sd == pytest.approx((1 / good_a + 1 / good_b) ** -0.5)


def test_no_likely_step_is_one_that_a_proof_decided_and_none_is_where_binaries_scatter() -> None:
    context, posterior = profile(linear(30), {0: 100.0, 10: 109.0, 20: 109.5, 30: 116.0})

    def likeliest(known: set[int], **noise: float) -> list[tuple[int, int]]:
        noises = tuple(replace(n, **noise) for n in posterior.fits.noises)
        changed = replace(posterior, fits=replace(posterior.fits, noises=noises))
        return [(s.before, s.after) for s, _ in likeliest_steps(context, changed, known)]

    assert likeliest(set(), binary=0.0) == [(0, 10), (20, 30)]  # half a percent is clear of five
    assert likeliest({10}, binary=0.0) == [(20, 30)]
    assert likeliest(set(), binary=0.3 * context.threshold) == []
    assert likeliest({10, 30}, binary=0.0) == []
    assert likeliest(set(), drift=0.3 * context.threshold) == []


def test_branches_that_lack_good_are_no_steps() -> None:
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(5)),
        ((), (), (0,), (1,), (2, 3)),
        (False, False, True, True, True),
        0,
        4,
    )
    context, posterior = profile(graph, {0: 100.0, 2: 101.0, 3: 150.0, 4: 110.0})
    assert [(s.before, s.after) for s in level_steps(context, posterior)] == [(0, 2), (2, 4)]


def test_only_steps_near_the_threshold_are_expected_to_reach_it() -> None:
    small = {c: 100.0 * 1.01 ** (c / 10) for c in range(0, 90, 10)}
    context, posterior = profile(linear(80), small)
    assert expected_steps_reaching_threshold(context, posterior) < 0.1
    one = {c: y * (1.1 if c >= 40 else 1.0) for c, y in small.items()}
    context, posterior = profile(linear(80), one)
    assert 0.5 < expected_steps_reaching_threshold(context, posterior) < 1.5


def test_levels_do_not_compare_where_the_testbed_drifts(monkeypatch: pytest.MonkeyPatch) -> None:
    context, posterior = profile(linear(30), LEVELS)
    monkeypatch.setattr(Posterior, "noise_rms", lambda self, name: 0.011 if name == "drift" else 0.0)
    assert expected_steps_reaching_threshold(context, posterior) == math.inf
    monkeypatch.setattr(Posterior, "noise_rms", lambda self, name: 0.009 if name == "drift" else 0.0)
    assert expected_steps_reaching_threshold(context, posterior) < math.inf


def test_boots_of_a_quiet_testbed_weigh_more_in_a_level() -> None:
    context, cache = context_of(linear(4), seen_on_unequal_testbeds())
    posterior, r = cache.posterior(context, (), 0.01), context.measured
    boot = posterior.noise_rms("boot") * r.noise.boot[r.testbed]
    one, other = measured_levels(context, posterior)
    for found in (one, other):
        weight = (1 / (boot**2 + 1 / r.precision))[r.commit == found.commit]
        assert found.sd == pytest.approx(weight.sum() ** -0.5)


def test_where_boots_have_tails_a_level_is_that_of_the_others() -> None:
    levels = (0.0, 0.3, -0.3, 0.2, -0.1, 0.1, -0.2, 8.0)
    visits = [
        Seen(c, tuple(100.0 + shift + x + run for run in (0.0, 0.02, -0.02)))
        for x in levels
        for c, shift in ((0, 0.0), (30, 10.0))
    ]
    visits += [Seen(15, (110.0, 110.02, 109.98)) for _ in range(8)]
    context, cache = context_of(linear(30), visits)
    assert context.measured.tails is not None
    found = {
        level.commit: level.level for level in measured_levels(context, cache.posterior(context, (), 0.1))
    }
    assert found[15] == pytest.approx(math.log(1.1), abs=0.003)  # good's mean is 1% higher
