"""Covariances of values that share groups, and their inverses without a large matrix.

K = D + s^2 [same testbed] + Z S Z', with D diagonal: each value belongs to one testbed, and to one or a few
of q further groups (binaries, blocks of time) whose effects have the covariance S. Testbeds are eliminated
first, each by a rank-one update in closed form; what is left is a matrix of order q (Woodbury 1950). What is
the same for all values of a group, as the commits in a kernel are, needs only Z' K^-1 Z and Z' K^-1 y. For T
values on w testbeds that costs T + w q^2 + q^3 in place of T^3; boots come with testbeds, binaries do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bisector.model.dag import Floats, Ints


class NestedCovariance:
    """G covariance matrices of T values, as above.

    log_determinant: (G,) of K; grouped: (G, q, q) Z' K^-1 Z.
    """

    def __init__(
        self, diagonal: Floats, testbed: Ints, variance: Floats, labels: Sequence[Ints], shared: Floats
    ) -> None:
        """diagonal: (G, T); testbed: (T,) from 0, none missing; variance: (G,) between testbeds, s^2; labels:
        the groups of each value (T,), numbered from 0 to q - 1 over all of them; shared: (G, q, q) S, which
        may be singular."""
        self._testbed, self._labels, self._size = testbed, labels, shared.shape[1]
        self._weight = 1.0 / diagonal
        count = int(testbed.max()) + 1
        total = _sum_by(self._weight, testbed, count)
        self._shrink = variance[:, None] / (1.0 + variance[:, None] * total)
        cells = sum(_sum_by(self._weight, testbed * self._size + one, count * self._size) for one in labels)
        self._by_testbed: Floats = np.reshape(cells, (-1, count, self._size))
        pairs = sum(
            _sum_by(self._weight, one * self._size + other, self._size**2)
            for one in labels
            for other in labels
        )
        within = np.reshape(pairs, (-1, self._size, self._size))
        within = within - (self._by_testbed * self._shrink[:, :, None]).transpose(0, 2, 1) @ self._by_testbed
        joint = np.eye(self._size) + shared @ within
        self._core = np.linalg.solve(joint, shared)
        self.grouped: Floats = within - within @ self._core @ within
        self._left = np.eye(self._size) - within @ self._core
        self.log_determinant: Floats = (
            np.log(diagonal).sum(axis=1)
            + np.log1p(variance[:, None] * total).sum(axis=1)
            + np.linalg.slogdet(joint)[1]
        )

    def project(self, values: Floats) -> tuple[Floats, Floats]:
        """Return Z' K^-1 y (G, q) and y' K^-1 y (G,). values: y (G, T)."""
        weighted = values * self._weight
        sums = _sum_by(weighted, self._testbed, self._shrink.shape[1])
        shrunk = sums * self._shrink
        moment = sum(_sum_by(weighted, one, self._size) for one in self._labels)
        moment = moment - (shrunk[:, None, :] @ self._by_testbed)[:, 0, :]
        square = (weighted * values).sum(axis=1) - (sums * shrunk).sum(axis=1)
        square -= ((moment[:, None, :] @ self._core)[:, 0, :] * moment).sum(axis=1)
        return (self._left @ moment[:, :, None])[:, :, 0], square

    def solve_one(self, rows: Floats, g: int) -> Floats:
        """Return rows K^-1 for the g-th matrix. rows: (R, T)."""
        own = self._within(rows, g)
        moment = sum(_sum_by(own, one, self._size) for one in self._labels)
        spread = moment @ self._core[g]
        result: Floats = own - self._within(sum(spread[:, one] for one in self._labels), g)
        return result

    def _within(self, rows: Floats, g: int) -> Floats:
        """Return rows (D + s^2 [same testbed])^-1 for the g-th matrix. rows: (R, T)."""
        weighted = rows * self._weight[g]
        update = _sum_by(weighted, self._testbed, self._shrink.shape[1]) * self._shrink[g]
        result: Floats = weighted - update[:, self._testbed] * self._weight[g]
        return result


def _sum_by(values: Floats, label: Ints, count: int) -> Floats:
    """Return the sums (R, count) of values (R, T) with the same label (T,)."""
    rows = len(values)
    place = label + count * np.arange(rows)[:, None]
    sums: Floats = np.bincount(place.ravel(), values.ravel(), rows * count).astype(float, copy=False)
    return sums.reshape(rows, count)
