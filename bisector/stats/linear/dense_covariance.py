"""Covariances without a structure that would save work, by their Cholesky factors."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtrs

from bisector.model.dag import Floats


class DenseCovariance:
    """G covariance matrices K of T values. log_determinant: (G,).

    K = L L'. What is needed of the inverse are products: with rows a and b they are those of L^-1 a and
    L^-1 b. That takes a quarter of the time of inverses, and keeps more digits.
    """

    def __init__(self, matrices: Floats) -> None:
        """matrices: (G, T, T). They are changed: T roundings of the largest variance are added to each, since
        rounding may have made a matrix indefinite whose values are nearly known from each other."""
        variances = np.einsum("gtt->gt", matrices)
        variances += matrices.shape[1] * np.finfo(float).eps * variances.max(axis=1, keepdims=True)
        self._factor = np.linalg.cholesky(matrices)
        self.log_determinant: Floats = 2 * np.log(np.einsum("gtt->gt", self._factor)).sum(axis=1)

    def whiten(self, rows: Floats, own: Floats) -> Floats:
        """Return L^-1 of rows (R, T) and of one more row of each matrix, own (G, T): (G, R + 1, T)."""
        result = np.empty((len(own), len(rows) + 1, rows.shape[1]))
        result[:, :-1] = rows
        result[:, -1] = own
        for factor, of in zip(self._factor, result, strict=True):
            of[:] = _divide(factor, of)
        return result

    def solve_one(self, rows: Floats, g: int) -> Floats:
        """Return rows K^-1 for the g-th matrix. rows: (R, T)."""
        factor = self._factor[g]
        return _divide(factor, _divide(factor, rows), transposed=True)


def _divide(factor: Floats, rows: Floats, *, transposed: bool = False) -> Floats:
    """Return L^-1 of each row, or L'^-1. factor: L, lower triangular; LAPACK sees its columns, so L'."""
    found: Floats = dtrtrs(factor.T, rows.T, lower=0, trans=0 if transposed else 1)[0].T
    return found
