"""Values in groups: combinations of labels, means by weight, and what two ways of grouping leave."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bisector.model.dag import Floats, Ints

MAX_DENSE_VISITS = 500
"""Up to so many visits a dense matrix sums them into cells faster than a sparse one."""


@dataclass(frozen=True, slots=True)
class TwoWayFit:
    """The effects of an additive model of two labels, by weighted least squares.

    first: (A,) effects of the first label; second: (B,) of the second one. Labels that share values, directly
    or through others, are a group: only differences within one are known, so `second` is relative to the
    first label of its group, where it is 0. A label that does not occur has the effect 0. total: (A,) weight
    of each first label; share: (A, B) what each second label has of it; covariance: (B, B) of `second`, where
    the weights are inverse variances; group: (A,) number of the group, -1 for a label that does not occur.
    """

    first: Floats
    second: Floats
    total: Floats
    share: Floats
    covariance: Floats
    group: Ints

    def contrast_variance(self, rows: Sequence[int], factors: Sequence[float]) -> float:
        """Return the variance of a sum of first effects times factors.

        The rows are of one group, each named once, and the factors add up to 0. An effect is the mean of its
        values, whose variance is 1 / total, less the mean of its second effects. These come from differences
        within first labels only, which are independent of the means.
        """
        factor = np.asarray(factors, dtype=float)
        part = factor @ self.share[list(rows)]
        return float((factor**2 / self.total[list(rows)]).sum() + part @ self.covariance @ part)


def group_combinations(*parts: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the combinations of labels that occur, sorted, and the index (V,) of each entry's combination.

    parts: labels (V,), each at least 0. One number stands for a combination, which is far faster than
    comparing columns.
    """
    sizes = tuple(int(part.max()) + 1 for part in parts)
    key, place = np.unique(np.ravel_multi_index(parts, sizes), return_inverse=True)
    return np.unravel_index(key, sizes), place


@functools.cache
def pairs_among(count: int) -> tuple[Ints, Ints]:
    """Return the first (P,) and the second (P,) of each pair of 0, 1, ..., count - 1. Do not change them."""
    first, second = np.triu_indices(count, 1)
    return first, second


def sum_by(values: Floats, label: Ints, count: int) -> Floats:
    """Return the sums (R, count) of values (R, T) with the same label (T,)."""
    rows = len(values)
    place = label + count * np.arange(rows)[:, None]
    sums: Floats = np.bincount(place.ravel(), values.ravel(), rows * count).astype(float, copy=False)
    return sums.reshape(rows, count)


def average_cells(weight: Floats, location: Floats, cell: Ints) -> tuple[Floats, Floats, Floats]:
    """Average visits into cells, under G hypotheses at once.

    weight: (G, V); location, cell: (V,). Returns the weighted means (G, T) of the cells, their total weights
    (G, T), and the log likelihood (G,) of the scatter within cells.
    """
    shape, rows = (len(cell), int(cell.max()) + 1), np.arange(len(cell))
    if len(cell) <= MAX_DENSE_VISITS:
        member = np.zeros(shape)
        member[rows, cell] = 1.0
    else:
        member = csr_array((np.ones(len(cell)), (rows, cell)), shape)
    total = weight @ member
    mean = (weight * location) @ member / total
    scatter = (weight * (location - mean[:, cell]) ** 2).sum(axis=1)
    log_likelihood = -0.5 * (scatter - np.log(weight).sum(axis=1) + np.log(total).sum(axis=1))
    return mean, total, log_likelihood


def fit_two_ways(values: Floats, weight: Floats, one: Ints, other: Ints) -> TwoWayFit:
    """Fit an additive model of two labels. values, weight, one, other: (V,); the second labels are few.

    The first label is eliminated from the normal equations. Subtracting the means of each way in turn
    converges so slowly where few labels link the others that it is no alternative.
    """
    shape = int(one.max()) + 1, int(other.max()) + 1
    cells = np.bincount(one * shape[1] + other, weight, shape[0] * shape[1]).reshape(shape)
    total = cells.sum(axis=1)
    share = cells / np.maximum(total, np.finfo(float).tiny)[:, None]
    mean = np.bincount(one, weight * values, shape[0]) / np.maximum(total, np.finfo(float).tiny)
    normal = np.diag(cells.sum(axis=0)) - cells.T @ share
    seen = (cells > 0).astype(float)
    _, part = connected_components(csr_array(seen.T @ seen), directed=False)
    # Without one label of each group, the equations have one solution.
    rest = np.setdiff1d(np.arange(shape[1]), np.unique(part, return_index=True)[1])
    covariance = np.zeros((shape[1], shape[1]))
    covariance[np.ix_(rest, rest)] = np.linalg.inv(normal[np.ix_(rest, rest)])
    second = covariance @ np.bincount(other, weight * (values - mean[one]), shape[1])
    group = np.where(total > 0, part[cells.argmax(axis=1)], -1)
    return TwoWayFit(mean - share @ second, second, total, share, covariance, group)


def subtract_two_ways(values: Floats, one: Ints, other: Ints) -> tuple[Floats, int]:
    """Return the residuals (V,) of an additive model of two labels (V,), and their degrees of freedom."""
    _, one = np.unique(one, return_inverse=True)
    _, other = np.unique(other, return_inverse=True)
    fit = fit_two_ways(values, np.ones(len(values)), one, other)
    left = values - fit.first[one] - fit.second[other]
    parts = len(np.unique(fit.group))
    return left, len(values) - (sum(fit.share.shape) - parts)
