"""Sums of weights over the ancestors of every node of an acyclic graph.

Each node with parents gets one main parent, so that main parents form a tree. What a merge adds to its main
parent's ancestors (its news) is listed once; the sum of a node is that of its main parent plus the sum of
its news. Real histories have few news: 31,000 in all for the 13,405 segments of Linux v2.6.18..v2.6.30, which
make up to 90 million pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Parents = Sequence[Sequence[int]]
_NONE = -1


class AncestorSums:
    """Sums over all ancestors, for many vectors of weights on one graph."""

    def __init__(self, parents: Parents, sizes: Sequence[int]) -> None:
        """Prepare the graph.

        parents: of each node, all of smaller numbers. sizes: (nodes,) commits in each; the parent with the
        longest way down by them is the main one. A longest way passes most of the history, so little is new
        beside it; the sums are right for any choice.
        """
        main = _main_parents(parents, sizes)
        news = _news(parents, main)
        counts = [len(found) for found in news]
        self._owner = np.repeat(np.arange(len(parents)), counts)
        self._new = np.array([node for found in news for node in found], dtype=np.int64)
        self._pointers = _pointers(np.array(main, dtype=np.int64))

    def sums(self, weights: Floats) -> Floats:
        """Return for every node the sum (nodes,) of the weights (nodes,) of its ancestors and itself."""
        nodes = len(weights)
        result = weights + np.bincount(self._owner, weights[self._new], minlength=nodes)
        for pointer in self._pointers:  # each pass doubles the length of the way that is summed
            result = result + np.append(result, 0.0)[pointer]
        return result


def _main_parents(parents: Parents, sizes: Sequence[int]) -> list[int]:
    """Return the main parent of each node, or _NONE."""
    ways: list[int] = []
    main: list[int] = []
    for node, above in enumerate(parents):
        chosen = max(above, key=ways.__getitem__, default=_NONE)
        main.append(chosen)
        ways.append(sizes[node] + (ways[chosen] if above else 0))
    return main


def _news(parents: Parents, main: Sequence[int]) -> list[list[int]]:
    """Return for each node those of its ancestors that its main parent neither is nor descends from."""
    enter, leave = _intervals(main)
    # A node is an ancestor of another, or it, if the other's way along main parents meets one of these:
    # the node itself, or a merge to which it is new.
    bearers = [[node] for node in range(len(main))]
    news: list[list[int]] = []
    for node, above in enumerate(parents):
        found: list[int] = []
        news.append(found)
        if len(above) < 2:
            continue
        place = enter[main[node]]
        seen = {main[node]}
        todo = [at for at in above if at != main[node]]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            for bearer in bearers[at]:
                if enter[bearer] <= place < leave[bearer]:
                    break
            else:
                found.append(at)
                todo += parents[at]
        for at in found:
            bearers[at].append(node)
    return news


def _intervals(main: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return intervals by which a tree answers: a is above b, or b, if enter[a] <= enter[b] < leave[a]."""
    nodes = len(main)
    size = [1] * nodes
    for node in range(nodes - 1, -1, -1):
        if main[node] != _NONE:
            size[main[node]] += size[node]
    enter = [0] * nodes
    free = [0] * nodes  # the next number below a node
    roots = 0
    for node, above in enumerate(main):
        if above == _NONE:
            enter[node] = roots
            roots += size[node]
        else:
            enter[node] = free[above]
            free[above] += size[node]
        free[node] = enter[node] + 1
    return enter, [enter[node] + size[node] for node in range(nodes)]


def _pointers(main: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return for each power of two the node so many main parents up, or the number of nodes where none is."""
    nodes = len(main)
    pointer = np.where(main == _NONE, nodes, main)
    found = []
    while (pointer < nodes).any():
        found.append(pointer)
        pointer = np.append(pointer, nodes)[pointer]
    return found
