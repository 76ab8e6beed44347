"""Covariances of values that share groups, and their inverses without a large matrix.

K = D + s^2 [same outer group] + Z S Z', with D diagonal: each value belongs to one outer group (its testbed,
or its binary), and to one or a few of q further groups (binaries or commits, blocks of time) whose effects
have the covariance S. Outer groups are eliminated first, each by a rank-one update in closed form; what is
left is a matrix of order q (Woodbury 1950). What is the same for all values of a group, as the commits in a
kernel are, needs only Z' K^-1 Z and Z' K^-1 y. For T values in w outer groups that costs T + w q^2 + q^3 in
place of T^3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetri, dgetri_lwork

from bisector.model.dag import Floats, Ints
from bisector.stats.grouping import sum_by


class NestedCovariance:
    """G covariance matrices of T values, as above.

    log_determinant: (G,) of K; grouped: (G, q, q) Z' K^-1 Z.
    """

    def __init__(
        self, diagonal: Floats, outer: Ints, variance: Floats, labels: Sequence[Ints], shared: Floats
    ) -> None:
        """diagonal: (G, T); outer: (T,) from 0, none missing; variance: (G, w) of the effect of each outer
        group, s^2; labels: the groups of each value (T,), numbered from 0 to q - 1 over all of them; shared:
        (G, q, q) S, which may be singular."""
        self._outer, self._labels, self._size, self._shared = outer, labels, shared.shape[1], shared
        self._weight = 1.0 / diagonal
        count = variance.shape[1]
        total = sum_by(self._weight, outer, count)
        self._shrink = variance / (1.0 + variance * total)
        cells = sum(sum_by(self._weight, outer * self._size + one, count * self._size) for one in labels)
        self._by_outer: Floats = np.reshape(cells, (-1, count, self._size))
        pairs = sum(
            sum_by(self._weight, one * self._size + other, self._size**2)
            for one in labels
            for other in labels
        )
        within = np.reshape(pairs, (-1, self._size, self._size))
        within = within - (self._by_outer * self._shrink[:, :, None]).transpose(0, 2, 1) @ self._by_outer
        joint = np.eye(self._size) + within @ shared
        self._rest, log_determinant = _invert(joint)
        # W, within, is Z' K^-1 Z without S: W - W (I + S W)^-1 S W = (I + W S)^-1 W.
        self.grouped: Floats = self._rest @ within
        self.log_determinant: Floats = (
            np.log(diagonal).sum(axis=1) + np.log1p(variance * total).sum(axis=1) + log_determinant
        )

    def project(self, values: Floats) -> tuple[Floats, Floats]:
        """Return Z' K^-1 y (G, q) and y' K^-1 y (G,). values: y (G, T)."""
        weighted = values * self._weight
        sums = sum_by(weighted, self._outer, self._shrink.shape[1])
        shrunk = sums * self._shrink
        moment = sum(sum_by(weighted, one, self._size) for one in self._labels)
        moment = moment - (shrunk[:, None, :] @ self._by_outer)[:, 0, :]
        result = (self._rest @ moment[:, :, None])[:, :, 0]
        square = (weighted * values).sum(axis=1) - (sums * shrunk).sum(axis=1)
        square -= ((self._shared @ result[:, :, None])[:, :, 0] * moment).sum(axis=1)
        return result, square

    def solve_one(self, rows: Floats, g: int) -> Floats:
        """Return rows K^-1 for the g-th matrix. rows: (R, T)."""
        own = self._within(rows, g)
        moment = sum(sum_by(own, one, self._size) for one in self._labels)
        spread = moment @ self._rest[g].T @ self._shared[g]
        result: Floats = own - self._within(sum(spread[:, one] for one in self._labels), g)
        return result

    def _within(self, rows: Floats, g: int) -> Floats:
        """Return rows (D + s^2 [same outer group])^-1 for the g-th matrix. rows: (R, T)."""
        weighted = rows * self._weight[g]
        update = sum_by(weighted, self._outer, self._shrink.shape[1]) * self._shrink[g]
        result: Floats = weighted - update[:, self._outer] * self._weight[g]
        return result


def _invert(matrices: Floats) -> tuple[Floats, Floats]:
    """Return the inverses of G matrices, and the logs (G,) of their determinants, which are positive.

    Both come from one LU decomposition: half of the time that two functions of NumPy take.
    """
    inverse, log_determinant = np.empty_like(matrices), np.empty(len(matrices))
    work = int(dgetri_lwork(matrices.shape[1])[0])
    for g, matrix in enumerate(matrices):  # LAPACK sees columns: the transposed matrix
        factors, pivots, _ = dgetrf(matrix.T)
        log_determinant[g] = np.log(np.abs(np.diagonal(factors))).sum()
        inverse[g] = dgetri(factors, pivots, lwork=work, overwrite_lu=1)[0].T
    return inverse, log_determinant
