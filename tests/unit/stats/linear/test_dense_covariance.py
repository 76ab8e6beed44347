"""Cholesky factors: the inverse written out, and values that are nearly known from each other."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats.linear.dense_covariance import DenseCovariance


def test_products_are_those_with_the_inverse_written_out() -> None:
    random = np.random.default_rng(2)
    parts = random.normal(size=(3, 6, 6))
    k = parts @ parts.transpose(0, 2, 1) + 0.1 * np.eye(6)
    rows, own, inverse = random.normal(size=(4, 6)), random.normal(size=(3, 6)), np.linalg.inv(k)
    found = DenseCovariance(k.copy())
    white = found.whiten(rows, own)
    products = white @ white.transpose(0, 2, 1)
    for g in range(3):
        every = np.vstack([rows, own[g]])
        assert products[g] == pytest.approx(every @ inverse[g] @ every.T)
        assert found.solve_one(rows, g) == pytest.approx(rows @ inverse[g])
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(k)[1])


def test_values_that_follow_from_each_other_have_factors() -> None:
    """An effect of a million thresholds: rounding leaves nothing of what is added to the diagonal."""
    effect = np.random.default_rng(3).uniform(0.5, 1.0, 60)
    k = np.outer(effect, effect) + 1e-18 * np.eye(60)
    found = DenseCovariance(np.stack([k, 1e-30 * k]))
    assert np.isfinite(found.log_determinant).all()
    assert np.isfinite(found.whiten(np.eye(60), np.ones((2, 60)))).all()
