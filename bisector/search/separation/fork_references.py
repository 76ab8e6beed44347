"""Commits that tell the offset of branches which lack part of good's history.

Such a commit contains no suspect. Without it a culprit on the branch and a culprit in the merge of the branch
read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.separation.inseparable import inseparable_commits, parents_left_out
from bisector.search.separation.splitting import containing_probability

MAX_FORK_REFERENCES = 2
"""Branches of unknown offset for which a commit is considered that measures the offset."""


def fork_references(posterior: Posterior, context: SearchContext, mass: NDArray[np.float64]) -> list[int]:
    """Return the commits to measure, for each fork base of a measured commit that may contain the culprit.

    mass: (n,) P(the commit contains the culprit).
    """
    p = posterior.design
    off = {p.tested[c] for c, fork in zip(p.commit.tolist(), p.fork.tolist(), strict=True) if fork}
    unsure = sorted((abs(mass[c] - 0.5), c) for c in off if 0.02 < mass[c] < 0.98)
    return _of_branches(posterior, context, mass, (c for _, c in unsure), MAX_FORK_REFERENCES)


def references_for_merge(
    posterior: Posterior, context: SearchContext, after: int, parents: Sequence[int]
) -> list[int]:
    """Return the commits to measure before a merge is compared with some of its parents only.

    The branches that are left out lack part of good's history. What they bring is no change of the merge.
    """
    left_out = parents_left_out(context, inseparable_commits(context, after), parents)
    if not left_out:
        return []
    mass = containing_probability(context, posterior.commit_probabilities(context.dag.weights))
    return _of_branches(posterior, context, mass, left_out, len(left_out))


def _of_branches(
    posterior: Posterior,
    context: SearchContext,
    mass: NDArray[np.float64],
    commits: Iterable[int],
    most: int,
) -> list[int]:
    """Return the references that are not measured yet, of the first `most` fork bases of some commits."""
    dag = context.dag
    found: dict[bytes, int] = {}
    for commit in commits:
        base = dag.fork_base(commit)
        if base in found or len(found) == most:
            continue
        below = np.flatnonzero(dag.ancestors_of_same_base(commit) & context.testable_mask)
        least = below[mass[below] <= mass[below].min() + 1e-6]
        found[base] = int(least[-1])  # the newest: its kernel differs least from what is built
    fresh = (commit for commit in found.values() if commit not in posterior.design.tested)
    return [commit for commit in fresh if dag.fork_base(commit) in found]
