"""Synthetic commit graphs: a straight line, or branches and merges as in the kernel."""

from __future__ import annotations

import functools

import numpy as np

from bisector.errors import RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import Mask

_BRANCH_SHARE, _MERGE_SHARE = 0.06, 0.06
"""Share of commits that open a branch, and of merges: v2.6.18..v2.6.30 has 6,496 in 111,556 commits."""
_OLD_BRANCH_SHARE = 0.4
"""Share of branches that forked before good: 44% of v2.6.29..v2.6.30 does not contain v2.6.29."""
_MAX_FORK_POINTS = 6
"""Fork points before good: most branches of a release cycle start from one of a few tags."""
_RECENT_COMMITS = 30
"""A branch starts from one of this many last commits of the main line."""
MAX_COMMITS = 2_000_000
"""More commits than any kernel history has."""


@functools.lru_cache(maxsize=4)
def linear(commits: int) -> CommitGraph:
    """Return good (node 0) and `commits` candidates in a line. Raises RequestError for fewer than 1."""
    _check(commits)
    n = commits + 1
    return CommitGraph(
        shas=tuple(f"{i:040x}" for i in range(n)),
        parents=((), *((i,) for i in range(commits))),
        candidate=(False, *([True] * commits)),
        good=0,
        bad=commits,
    )


def branched(commits: int, seed: int) -> CommitGraph:
    """Return a random graph with merges, and with branches that forked before good and so lack it.

    The boundary is a few fork points on older history, then good; `commits` candidates follow, of which the
    last is bad. Raises RequestError for fewer than 1.
    """
    _check(commits)
    random = np.random.default_rng((seed, 0xDA6))
    boundary = min(_MAX_FORK_POINTS, max(1, commits // 50))
    good = boundary
    parents: list[tuple[int, ...]] = [()] * (boundary + 1)
    main_line = [good]
    branches: list[int] = []
    while len(parents) - boundary - 1 + -(-len(branches) // 29) < commits:
        draw, new = random.random(), len(parents)
        room = commits - (new - boundary - 1)
        if draw < _BRANCH_SHARE and room > 2:
            if random.random() < _OLD_BRANCH_SHARE:
                start = int(random.integers(boundary))
            else:
                start = main_line[-1 - int(random.integers(min(_RECENT_COMMITS, len(main_line))))]
            parents.append((start,))
            branches.append(new)
        elif draw < _BRANCH_SHARE + _MERGE_SHARE and branches:
            parents.append((main_line[-1], branches.pop(int(random.integers(len(branches))))))
            main_line.append(new)
        else:
            head = int(random.integers(len(branches) + 1))
            if head == len(branches):
                parents.append((main_line[-1],))
                main_line.append(new)
            else:
                parents.append((branches[head],))
                branches[head] = new
    while branches:  # open branches are merged by octopus merges, as in Linux (up to 30 parents)
        parents.append((main_line[-1], *branches[:29]))
        main_line.append(len(parents) - 1)
        del branches[:29]
    n = len(parents)
    if main_line[-1] != n - 1:
        raise AssertionError("the last commit must be on the main line")
    return CommitGraph(
        shas=tuple(f"{i:040x}" for i in range(n)),
        parents=tuple(parents),
        candidate=tuple(i > boundary for i in range(n)),
        good=good,
        bad=n - 1,
    )


def _check(commits: int) -> None:
    if not 1 <= commits <= MAX_COMMITS:
        raise RequestError(f"a history of {commits} commits is impossible", cure=f"1 to {MAX_COMMITS}")


def ancestors(graph: CommitGraph, commit: int) -> Mask:
    """Return the mask (n,) of the ancestors of a commit, itself included.

    Written apart from CommitDag, so that the truth does not rest on the code that is tested against it.
    """
    mask = np.zeros(len(graph.shas), dtype=bool)
    mask[commit] = True
    parents = graph.parents
    for i in range(commit, -1, -1):  # parents have smaller indices, so one sweep down is enough
        if mask[i]:
            for parent in parents[i]:
                mask[parent] = True
    return mask
