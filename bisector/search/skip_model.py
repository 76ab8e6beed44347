"""Commits near one that cannot be tested: how likely each is broken too, so that the next try goes far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.search.context import SearchContext

SHARED_BREAKAGE_PROBABILITY = 0.6
"""Chance that a failure is a breakage that neighbours share, and not the commit's own. Between two broken
commits, with none that works between them, it is the chance to fail. Where failures are scattered (30% of
1,024 commits) a search costs 2% more than without distance, with 0.8 it is 8%."""


@dataclass(frozen=True, slots=True)
class Breakage:
    """What failures so far say of every commit.

    fails: (n,) chance (0..1) that a breakage already seen holds it as well. hope: (n,) what a trial brings
    for its cost beside that of a commit which surely works (0..1): a failure brings nothing, but it costs
    nothing either if the culprit lies in the breakage itself, for then all of its commits must be tried.
    """

    fails: NDArray[np.float64]
    hope: NDArray[np.float64]


def estimate_breakage(context: SearchContext, weight: NDArray[np.float64]) -> Breakage:
    """Return what failures so far say. weight: (n,) probability of each commit to be a culprit.

    A breakage begins at some commit and ends where it was mended. How long such stretches are differs by
    orders of magnitude, so the logarithm of the distance to either edge is taken as uniform between what is
    known: the broken commits seen, and the nearest that worked. Every further broken one therefore moves the
    next try out by a factor, not by a step. Distances are counted in the topological order of the graph, in
    which a branch's commits stand together. What was known before any trial (not Linux, --skip) says nothing
    of its neighbours.
    """
    n = context.dag.n
    fails, hope = np.zeros(n), np.ones(n)
    broken = np.array(sorted(set(context.state.untestable) - set(context.graph.untestable)), dtype=np.int64)
    works = np.array(sorted({v.commit for v in context.state.visits if v.samples}), dtype=np.int64)
    total = max(float(weight.sum()), 1e-12)
    for gap in np.unique(np.searchsorted(works, broken)).tolist():
        below = int(works[gap - 1]) if gap else -1
        above = int(works[gap]) if gap < len(works) else n
        inside = broken[(broken > below) & (broken < above)]
        first, last = int(inside[0]), int(inside[-1])
        extent = last - first + 1
        up, down = np.arange(last + 1, above), np.arange(below + 1, first)
        fails[first : last + 1] = SHARED_BREAKAGE_PROBABILITY
        fails[up] = SHARED_BREAKAGE_PROBABILITY * _reaches(up - first + 1, extent, above - first + 1)
        fails[down] = SHARED_BREAKAGE_PROBABILITY * _reaches(last - down + 1, extent, last - below + 1)
        stretch = slice(below + 1, above)
        needed = min(1.0, float(weight[stretch] @ fails[stretch]) / total)
        hope[stretch] = (1 - fails[stretch]) / (1 - fails[stretch] * needed)
    return Breakage(fails, hope)


def _reaches(distance: NDArray[np.int64], least: int, most: int) -> NDArray[np.float64]:
    """Return the chance that a stretch seen to be `least` long, and known to be shorter than `most`, reaches
    as far as `distance` (all in commits, least < distance < most)."""
    reaches: NDArray[np.float64] = np.log(most / distance) / np.log(most / least)
    return reaches
