"""Commits that have no boot yet and whose test would split what remains of a search."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior

MIN_SPLIT_PROBABILITY = 0.01
"""Probability of a class from which a commit that splits it may bring something. Of those that ended a search
the likeliest had 0.037 to 0.44; one of 1e-6 made a search measure the same commits 200 times."""

MAX_SPLIT_CLASSES = 4
"""Classes, the likeliest first, of which one looks for a commit that splits them."""


def containing_probability(context: SearchContext, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(the commit contains the culprit) for every commit (n,). weight: (n,) P(it is a culprit)."""
    return context.dag.mass(weight) / max(float(weight.sum()), 1e-12)


def commits_that_split(
    posterior: Posterior, context: SearchContext, mass: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the mask (n,) of the commits without a boot that split what remains. mass: (n,) P(the commit
    contains the culprit): one above all suspects, or above none, splits nothing."""
    built = {c for c, layout in context.state.binaries if layout == 0 and context.testable(c)}
    fresh = context.testable_mask & ~tested_mask(posterior, context)
    fresh[list(built_without_boot(context, built))] = True
    return fresh & (mass > 1e-6) & (mass < 1 - 1e-6)


def splits_likely_class(posterior: Posterior, fresh: NDArray[np.bool_]) -> bool:
    """Return whether one of the commits splits a class that comes into question. fresh: mask (n,) of them."""
    label = posterior.design.classes.label[fresh]
    return bool((posterior.marginal[label[label >= 0]] >= MIN_SPLIT_PROBABILITY).any())


def splits_of_likely_classes(
    posterior: Posterior, context: SearchContext, fresh: NDArray[np.bool_]
) -> list[int]:
    """Return for each of the likeliest classes the commit that splits it most evenly, if one does.

    fresh: mask (n,) of the commits that may be measured. One may halve the probability above and below it
    and yet split no class that comes into question.
    """
    found = []
    label = posterior.design.classes.label
    for k in np.argsort(-posterior.marginal, kind="stable")[:MAX_SPLIT_CLASSES].tolist():
        if posterior.marginal[k] < MIN_SPLIT_PROBABILITY:
            break
        inside = context.dag.mass(np.where(label == k, context.dag.weights, 0.0))
        even = np.where(fresh, np.minimum(inside, inside.max() - inside), 0.0)
        best = int(np.argmax(even))
        if even[best] > 1e-9 * inside.max():
            found.append(best)
    return found


def tested_mask(posterior: Posterior, context: SearchContext) -> NDArray[np.bool_]:
    """Return the mask (n,) of the commits that were measured, marked or built."""
    mask = np.zeros(context.dag.n, dtype=bool)
    mask[list(posterior.design.tested)] = True
    return mask


def built_without_boot(context: SearchContext, built: Collection[int]) -> set[int]:
    """Return the built commits of whose kernel no boot counts: it was lost, or discarded, or is to come.

    They split what remains as those that are not built.
    """
    first = context.first_same_binary
    booted = {first.get(visit.commit, visit.commit) for visit in context.state.visits}
    return {c for c in built if first.get(c, c) not in booted}
