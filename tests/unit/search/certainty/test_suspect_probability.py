"""What a decision states of its suspects."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from bisector.search.certainty.culprit_probability import culprit_probability
from bisector.search.certainty.suspect_probability import (
    failed_suspects,
    other_noise,
    set_probability,
    stated_probability,
    stated_suspects,
    suspect_probability,
    unseen_modes,
)
from tests.support.searching import Seen, context_of, goal, linear

EFFECT = math.log(1.1)


def boots(
    *levels: tuple[int, float], scatter: float = 1.0, purpose: Literal["search", "certify"] = "search"
) -> list[Seen]:
    """Return a boot for each (commit, level), of three runs that scatter by so much."""
    random = np.random.default_rng(3)
    draws = [(c, level + scatter * random.standard_normal(3)) for c, level in levels]
    return [Seen(c, tuple(values.tolist()), purpose) for c, values in draws]


def fresh(*commits: int) -> list[Seen]:
    """Return fresh boots of commits of STEP."""
    return boots(*((c, 110.0 if c >= 6 else 100.0) for c in commits), purpose="certify")


STEP = boots((0, 100), (16, 110), (8, 110), (4, 100), (6, 110), (5, 100), (0, 100), (16, 110))
"""Boots of a range whose culprit is 6, next to its parent 5."""


def with_other_noise(probability: float) -> float:
    """Return what is stated while no suspect has failed: the odds of other noise are 1 to 4."""
    return 0.8 * probability + 0.2 * min(probability, 2 / 3)


def test_a_likely_suspect_has_the_average_over_all_noise() -> None:
    ends = [(0, 100.0), (16, 110.0)] * 10  # so many that modes would have been seen
    beside = [(5, 100.0), (6, 110.0)]
    context, cache = context_of(linear(16), boots(*ends, *beside, scatter=1.3))
    posterior = cache.posterior(context, (), EFFECT)
    by_few = float(posterior.commit_probabilities(context.dag.weights)[6])
    averaged = culprit_probability(context, cache, (6,), (), EFFECT)
    assert 0.9 < averaged < by_few
    assert averaged < 1 - unseen_modes(context)
    (first, probability), *_ = stated_suspects(context, cache, posterior, (), EFFECT)
    assert first == 6
    assert probability == pytest.approx(with_other_noise(averaged), abs=0.001)
    assert probability < with_other_noise(by_few) - 0.002, "it measures"


def test_an_unlikely_one_is_not_averaged() -> None:
    context, cache = context_of(linear(16), STEP)
    averaged = stated_probability(context, cache, (5,), 0.9, (), EFFECT)
    assert averaged == pytest.approx(culprit_probability(context, cache, (5,), (), EFFECT), abs=0.001)
    assert averaged < 0.1
    by_few = stated_probability(context, cache, (5,), 0.87, (), EFFECT)
    assert by_few == pytest.approx(with_other_noise(0.87))


def test_the_average_never_raises_what_is_stated() -> None:
    context, cache = context_of(linear(16), STEP + boots(*[(0, 100.0), (16, 110.0)] * 4))
    stated = stated_probability(context, cache, (6,), 0.9, (), EFFECT)
    assert stated == pytest.approx(with_other_noise(0.9))


def test_suspects_below_a_percent_are_not_named_and_the_likeliest_is_first() -> None:
    context, cache = context_of(linear(16), boots((0, 100), (16, 110), (8, 110), (4, 100)))
    posterior = cache.posterior(context, (), EFFECT)
    found = stated_suspects(context, cache, posterior, (), EFFECT)
    shares = posterior.commit_probabilities(context.dag.weights)
    assert {c for c, _ in found} == set(np.flatnonzero(shares >= 0.01).tolist())
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)


@pytest.mark.parametrize(
    ("repeated", "missed"), [(0, 1.0), (1, 3 / 4), (2, 7 / 12), (6, 127 / 448)], ids=["0", "1", "2", "6"]
)
def test_modes_are_the_less_likely_the_more_boots_repeat(repeated: int, missed: float) -> None:
    once = boots((0, 100), (16, 110), (8, 110))
    context, _ = context_of(linear(16), once + boots(*[(16, 110.0)] * repeated))
    assert unseen_modes(context) == pytest.approx(0.2 * missed / (0.2 * missed + 0.8))


def test_a_boot_of_a_commit_on_another_testbed_repeats_none() -> None:
    here = boots((0, 100), (16, 110))
    there = [replace(boot, testbed="other") for boot in here]
    assert unseen_modes(context_of(linear(16), here + there)[0]) == pytest.approx(0.2)
    assert unseen_modes(context_of(linear(16), here + here)[0]) < 0.15


def test_an_exact_clock_has_no_modes_and_nothing_measured_says_nothing() -> None:
    wanted = replace(goal(), clock="instructions")
    same = [Seen(c, (level, level), "verify") for c, level in ((0, 100.0), (16, 110.0)) for _ in range(2)]
    assert unseen_modes(context_of(linear(16), same, wanted=wanted)[0]) == 0.0
    assert unseen_modes(context_of(linear(16), same)[0]) > 0.1
    assert unseen_modes(context_of(linear(16))[0]) == 0.0


def test_what_is_stated_leaves_room_for_modes() -> None:
    context, cache = context_of(linear(16), STEP)
    known = 1 - unseen_modes(context)
    assert culprit_probability(context, cache, (6,), (), EFFECT) > known > 0.8
    assert set_probability(context, cache, (6,), (), EFFECT) == known
    assert suspect_probability(context, cache, (6,), (), EFFECT) == pytest.approx(with_other_noise(known))
    stated = stated_probability(context, cache, (6,), 1.0, (), EFFECT)
    assert stated == pytest.approx(with_other_noise(known))
    other = culprit_probability(context, cache, (5,), (), EFFECT)
    assert set_probability(context, cache, (5,), (), EFFECT) == other < 0.1
    assert suspect_probability(context, cache, (5,), (), EFFECT) == pytest.approx(other)


def test_a_failed_suspect_is_a_commit_with_fresh_boots_that_is_not_only_a_parent() -> None:
    context, _ = context_of(linear(16), STEP + fresh(9, 8, 12, 11, 3, 5))
    assert failed_suspects(context, (6,), ()) == (3, 9, 12), "8, 11 and 5 are parents; 3 stands alone"
    assert failed_suspects(context, (9,), ()) == (3, 5, 12), "what is stated is of 9; 5 stands alone then"
    assert failed_suspects(context, (6,), ((9, 10), (12,))) == (3,)
    assert failed_suspects(context_of(linear(16), STEP + fresh(9, 8, 7))[0], (6,), ()) == (8, 9)


def test_the_parent_of_a_failed_suspect_is_the_nearest_that_can_be_tested() -> None:
    context, _ = context_of(linear(16, untestable={8: "skipped"}), STEP[:2] + fresh(9, 7))
    assert failed_suspects(context, (6,), ()) == (9,)


def test_a_failed_merge_has_fresh_boots_of_one_parent_at_least() -> None:
    parents = tuple((1, 3) if c == 5 else (1,) if c == 3 else (c - 1,) if c else () for c in range(9))
    graph = replace(linear(8), parents=parents)
    seen = boots((0, 100), (8, 110)) + boots((5, 110), (3, 110), purpose="certify")
    assert failed_suspects(context_of(graph, seen)[0], (2,), ()) == (5,)


@pytest.mark.parametrize(
    ("suspects", "other"), [((6, 5), 1 / 5), ((9, 8), 3 / 7), ((9, 8, 12, 11), 9 / 13)], ids=["0", "1", "2"]
)
def test_each_failed_suspect_triples_the_odds_of_noise_that_nothing_holds(
    suspects: tuple[int, ...], other: float
) -> None:
    often = boots(*[(0, 100.0), (16, 110.0)] * 8)  # modes would have been seen
    context, cache = context_of(linear(16), STEP + often + fresh(*suspects))
    assert other_noise(context, (6,), ()) == pytest.approx(other)
    known = 1 - unseen_modes(context)
    assert known > 0.97
    by_all = stated_probability(context, cache, (6,), 1.0, (), EFFECT)
    assert by_all == pytest.approx((1 - other) * known + other * 2 / 3)
    assert suspect_probability(context, cache, (6,), (), EFFECT) == pytest.approx(by_all)
    by_few = stated_probability(context, cache, (6,), 0.8, (), EFFECT)
    assert by_few == pytest.approx((1 - other) * 0.8 + other * 2 / 3)
    assert stated_probability(context, cache, (6,), 0.6, (), EFFECT) == 0.6
    assert set_probability(context, cache, (6,), (), EFFECT) == known


def test_heavy_tails_of_boots_count_like_a_failed_suspect() -> None:
    often = [(0, 100.0), (16, 110.0)] * 8
    far = [(0, 104.0), (16, 106.5)]
    quiet, _ = context_of(linear(16), boots(*often, scatter=0.1))
    odd, _ = context_of(linear(16), boots(*often, *far, scatter=0.1))
    assert (quiet.measured.tails, odd.measured.tails is None) == (None, False)
    assert other_noise(quiet, (6,), ()) == pytest.approx(1 / 5)
    assert other_noise(odd, (6,), ()) == pytest.approx(3 / 7)
    assert other_noise(context_of(linear(16))[0], (6,), ()) == pytest.approx(1 / 5)


def test_where_the_clock_is_exact_there_is_no_other_noise() -> None:
    same = [Seen(c, (level, level), "certify") for c, level in ((8, 100.0), (9, 110.0)) for _ in range(2)]
    exact, cache = context_of(linear(16), same, wanted=replace(goal(), clock="instructions"))
    assert failed_suspects(exact, (6,), ()) == (9,)
    assert other_noise(exact, (6,), ()) == 0.0
    assert stated_probability(exact, cache, (9,), 0.85, (), EFFECT) == 0.85
