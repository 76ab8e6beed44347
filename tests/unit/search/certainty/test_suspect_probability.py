"""What a decision states of its suspects."""

from __future__ import annotations

import math

import numpy as np

from bisector.search.certainty.culprit_probability import culprit_probability
from bisector.search.certainty.suspect_probability import stated_probability, stated_suspects
from tests.support.searching import Seen, context_of, linear

EFFECT = math.log(1.1)


def boots(*levels: tuple[int, float]) -> list[Seen]:
    """Return a boot for each (commit, level), of three runs that scatter by 1."""
    random = np.random.default_rng(3)
    return [Seen(c, tuple((level + random.standard_normal(3)).tolist()), "search") for c, level in levels]


STEP = boots((0, 100), (16, 110), (8, 110), (4, 100), (6, 110), (5, 100), (0, 100), (16, 110))
"""Boots of a range whose culprit is 6, next to its parent 5."""


def test_a_likely_suspect_has_the_average_over_all_noise() -> None:
    context, cache = context_of(linear(16), STEP)
    posterior = cache.posterior(context, (), EFFECT)
    by_few = float(posterior.commit_probabilities(context.dag.weights)[6])
    averaged = culprit_probability(context, cache, (6,), (), EFFECT)
    assert 0.9 < averaged < by_few
    (first, probability), *_ = stated_suspects(context, cache, posterior, (), EFFECT)
    assert (first, probability) == (6, averaged)


def test_an_unlikely_one_keeps_the_probability_that_chose_the_trial() -> None:
    context, cache = context_of(linear(16), STEP)
    assert stated_probability(context, cache, (6,), 0.89, (), EFFECT) == 0.89


def test_the_average_never_raises_what_is_stated() -> None:
    context, cache = context_of(linear(16), STEP)
    assert stated_probability(context, cache, (6,), 0.9, (), EFFECT) == 0.9


def test_suspects_below_a_percent_are_not_named_and_the_likeliest_is_first() -> None:
    context, cache = context_of(linear(16), boots((0, 100), (16, 110), (8, 110), (4, 100)))
    posterior = cache.posterior(context, (), EFFECT)
    found = stated_suspects(context, cache, posterior, (), EFFECT)
    shares = posterior.commit_probabilities(context.dag.weights)
    assert {c for c, _ in found} == set(np.flatnonzero(shares >= 0.01).tolist())
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
