"""Values in groups: combinations of labels, means by weight, and what two ways of grouping leave."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from bisector.model.dag import Floats, Ints

MAX_DENSE_VISITS = 500
"""Up to so many visits a dense matrix sums them into cells faster than a sparse one."""


MAX_TURNS = 30
"""Turns of `fit_two_ways`. Balanced data need one; a limit of a spread needs no more than two digits."""


def group_combinations(*parts: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the combinations of labels that occur, sorted, and the index (V,) of each entry's combination.

    parts: labels (V,), each at least 0. One number stands for a combination, which is far faster than
    comparing columns.
    """
    sizes = tuple(int(part.max()) + 1 for part in parts)
    key, place = np.unique(np.ravel_multi_index(parts, sizes), return_inverse=True)
    return np.unravel_index(key, sizes), place


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


def fit_two_ways(values: Floats, weight: Floats, one: Ints, other: Ints) -> tuple[Floats, Floats]:
    """Return the effects of each label of an additive model of two labels, a constant apart.

    values, weight, one, other: (V,). A label that does not occur has the effect 0. Each way's means are
    subtracted in turn (Gauss-Seidel on the normal equations).
    """
    ways = [(label, np.maximum(np.bincount(label, weight), np.finfo(float).tiny)) for label in (one, other)]
    effects = [np.zeros(len(total)) for _, total in ways]
    left = values
    for _ in range(MAX_TURNS):
        before = left
        for k, (label, total) in enumerate(ways):
            mean = np.bincount(label, weight * left) / total
            effects[k] += mean
            left = left - mean[label]
        if np.abs(left - before).max() <= 1e-9 * np.abs(left).max():
            break
    return effects[0], effects[1]


def subtract_two_ways(values: Floats, one: Ints, other: Ints) -> tuple[Floats, int]:
    """Return the residuals (V,) of an additive model of two labels (V,), and their degrees of freedom."""
    _, one = np.unique(one, return_inverse=True)
    _, other = np.unique(other, return_inverse=True)
    effects = fit_two_ways(values, np.ones(len(values)), one, other)
    left = values - effects[0][one] - effects[1][other]
    shape = len(effects[0]), len(effects[1])
    linked = coo_array((np.ones(len(values)), (one, shape[0] + other)), (sum(shape), sum(shape)))
    parts = int(connected_components(linked, directed=False, return_labels=False))
    return left, len(values) - (sum(shape) - parts)
