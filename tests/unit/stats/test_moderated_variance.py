"""Variances of groups: drawn to the pool with few data, their own with many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, f

from bisector.stats.moderated_variance import PRIOR_DF, PRIOR_WEIGHT, moderate


def test_few_data_are_drawn_to_the_pool_and_many_are_not() -> None:
    few, _ = moderate(np.array([1.0, 9.0]), np.array([2.0, 2.0]))
    many, _ = moderate(np.array([1.0, 9.0]), np.array([200.0, 200.0]))
    assert many == pytest.approx([1.0, 9.0], rel=0.05)
    assert many[0] < few[0] < few[1] < many[1]
    assert few[1] / few[0] < 3


def test_the_weights_are_those_of_the_likelihoods_and_the_priors() -> None:
    """By hand: Smyth's moderated variances for each d0, weighed by their scaled F densities."""
    s2, df = np.array([1.0, 5.0, 2.0]), np.array([6.0, 6.0, 12.0])
    pooled = float(s2 @ df / df.sum())
    weights, variances = [], []
    for d0, prior in zip(PRIOR_DF, PRIOR_WEIGHT, strict=True):
        if np.isinf(d0):
            s0, variance = pooled, np.full(3, pooled)
            density = chi2.logpdf(s2 * df / s0, df) + np.log(df / s0)
        else:
            s0 = minimize_scalar(
                lambda s0, d0=d0: -(f.logpdf(s2 / s0, df, d0) - np.log(s0)).sum(), bounds=(0.1, 20.0)
            ).x
            variance = (d0 * s0 + df * s2) / (d0 + df)
            density = f.logpdf(s2 / s0, df, d0) - np.log(s0)
        weights.append(prior * np.exp(density.sum()))
        variances.append(variance)
    expected = np.average(variances, axis=0, weights=weights)
    assert moderate(s2, df)[0] == pytest.approx(expected, rel=1e-3)


def test_groups_that_are_alike_are_the_pool() -> None:
    found, df = moderate(np.array([1.0, 1.1, 0.9]), np.array([20.0, 20.0, 20.0]))
    assert found == pytest.approx(1.0, rel=0.06)
    assert (df > 25).all()  # the others' data count
    assert (df <= 60).all()


def test_a_group_without_data_is_the_pool() -> None:
    found, df = moderate(np.array([4.0, 4.0, 0.0]), np.array([50.0, 50.0, 0.0]))
    assert found[2] == pytest.approx(4.0, rel=0.05)
    assert 0 < df[2] <= 100


def test_one_group_is_what_was_measured() -> None:
    found, df = moderate(np.array([4.0]), np.array([3.0]))
    assert (found.tolist(), df.tolist()) == ([4.0], [3.0])


def test_groups_that_differ_keep_their_own_degrees_of_freedom() -> None:
    _, df = moderate(np.array([1.0, 100.0]), np.array([40.0, 40.0]))
    assert (df < 50).all()
    assert (df >= 40).all()


def test_the_moderated_variance_has_less_error_than_either() -> None:
    """Over labs of two to four machines, alike or unlike, with three degrees of freedom each."""
    random = np.random.default_rng(4)
    errors = []
    for _ in range(400):
        count = int(random.integers(2, 5))
        spread = float(random.choice([0.0, 1.0]))
        truth = np.exp(spread * random.standard_normal(count))
        df = np.full(count, 3.0)
        own = truth * random.chisquare(3, count) / 3
        pooled = np.full(count, own.mean())
        errors.append([np.mean(np.log(x / truth) ** 2) for x in (moderate(own, df)[0], own, pooled)])
    moderated, own_error, pooled_error = np.mean(errors, axis=0)
    assert moderated < 0.8 * own_error
    assert moderated < pooled_error
