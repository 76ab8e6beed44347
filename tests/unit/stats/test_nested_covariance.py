"""The structured inverse is that of the matrix written out."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats.nested_covariance import NestedCovariance


@pytest.mark.parametrize("between", [(0.0,) * 4, (3.0,) * 4, (0.0, 3.0, 1.0, 0.0)])
@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize("silent", [False, True])
def test_it_is_the_inverse_of_the_matrix_written_out(
    between: tuple[float, ...], singular: bool, silent: bool
) -> None:
    random = np.random.default_rng(8)
    count, hypotheses = 30, 3
    outer = random.permutation(np.arange(count) % 4)
    labels = [random.integers(0, 5, count), random.integers(5, 7, count)]
    groups = sum((one[:, None] == np.arange(7)).astype(float) for one in labels)
    diagonal = random.uniform(0.5, 2.0, (hypotheses, count))
    root = random.standard_normal((hypotheses, 7, 2 if singular else 7))
    shared = root @ root.transpose(0, 2, 1)
    if silent:  # of no group an effect, of some, of all
        shared[0], shared[1, :5], shared[1, :, :5] = 0.0, 0.0, 0.0
    variance = np.arange(float(hypotheses))[:, None] * between
    found = NestedCovariance(diagonal, outer, variance, labels, shared)
    full = diagonal[:, :, None] * np.eye(count) + groups @ shared @ groups.T
    full += variance[:, outer][:, None, :] * (outer[:, None] == outer)
    inverse = np.linalg.inv(full)
    y, rows = random.standard_normal((hypotheses, count)), random.standard_normal((6, count))
    assert found.grouped == pytest.approx(groups.T @ inverse @ groups, abs=1e-9)
    moment, square = found.project(y)
    assert moment == pytest.approx((groups.T @ inverse @ y[:, :, None])[:, :, 0], abs=1e-9)
    assert square == pytest.approx((y[:, None, :] @ inverse @ y[:, :, None])[:, 0, 0], abs=1e-9)
    assert found.solve_one(rows, 2) == pytest.approx(rows @ inverse[2], abs=1e-9)
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(full)[1], abs=1e-9)


def test_values_that_are_nearly_known_keep_their_digits() -> None:
    """Two groups of one value each, whose noise is a millionth of what the groups differ by."""
    noise = np.array([[1e-12, 4e-12]])
    one, none = np.array([0, 1]), np.zeros((1, 2))
    found = NestedCovariance(noise, one, none, [one], np.eye(2)[None])
    expected = 1 / (1 + noise)
    assert np.diagonal(found.grouped[0]) == pytest.approx(expected[0], rel=1e-12)
    moment, square = found.project(np.array([[3.0, 5.0]]))
    assert moment == pytest.approx(expected * (3.0, 5.0), rel=1e-12)
    assert square == pytest.approx([34.0], rel=1e-3)
