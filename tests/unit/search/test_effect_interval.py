"""The interval of an effect holds what its prior and the comparison say, and is made when it is asked for."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bisector.search.effect_interval import (
    EFFECT_SCALE_FACTOR,
    MIN_EFFECT_SCALES,
    STOPPED_ALPHA_SHARE,
    interval_at_stop,
    log_sum,
)
from bisector.search.sequential_test import Evidence

ALPHA, THRESHOLD = 0.05, 0.01


def test_a_sum_of_exponentials_neither_overflows_nor_vanishes() -> None:
    assert log_sum(np.array([1000.0, 1000.0])) == pytest.approx(1000 + math.log(2))
    assert log_sum(np.array([-1000.0, -1001.0])) == pytest.approx(-1000 + math.log1p(math.exp(-1)))


def test_of_a_large_effect_that_is_known_well_the_prior_says_next_to_nothing() -> None:
    sd, tail = 0.001, STOPPED_ALPHA_SHARE * ALPHA / 2
    low, high = interval_at_stop(np.zeros(1), np.array([0.5]), np.array([sd**2]), THRESHOLD, ALPHA)
    assert (0.5 - low, high - 0.5) == pytest.approx((-norm.ppf(tail) * sd,) * 2, rel=1e-3)


def test_the_interval_leaves_as_much_on_either_side_as_the_posterior_has_there() -> None:
    log_weight, mean, sd = np.log([0.7, 0.3]), np.array([0.012, 0.02]), np.array([0.004, 0.015])
    low, high = interval_at_stop(log_weight, mean, sd**2, THRESHOLD, ALPHA)
    scales = THRESHOLD * EFFECT_SCALE_FACTOR ** np.arange(MIN_EFFECT_SCALES)

    def density(effect: float) -> float:
        prior = norm.pdf(effect, 0, scales).mean()
        return float(prior * (np.exp(log_weight) * norm.pdf(mean, effect, sd)).sum())

    ends = -0.3, 0.3
    whole = quad(density, *ends, points=(0.0, 0.012, 0.02), limit=200)[0]
    below, above = (quad(density, *part, limit=200)[0] / whole for part in ((ends[0], low), (high, ends[1])))
    assert (below, above) == pytest.approx((STOPPED_ALPHA_SHARE * ALPHA / 2,) * 2, rel=1e-3)


def test_an_interval_is_made_once_and_only_where_it_is_asked_for() -> None:
    made = []

    def interval() -> tuple[float, float]:
        made.append(1)
        return 0.1, 0.3

    found = Evidence(9.0, -9.0, 0.2, 0.05, interval, 1.0)
    assert (found.estimate, made) == (0.2, [])
    assert (found.low, found.high, found.low, made) == (0.1, 0.3, 0.1, [1])
