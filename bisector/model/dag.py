"""The commit graph as arrays: ancestors, classes of candidates, probability masses, and fork bases.

The graph is compressed into linear segments: maximal chains in which every commit but the first has one
parent and every commit but the last has one child. Edges leave a segment only at its end and enter it only at
its start. The ancestors of a commit are therefore the segments reachable from its own, and its own up to the
commit. All answers are vectors over the commits (n,). Nothing is stored for pairs of commits, only masks of
the commits asked about.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bisector.model.ancestor_sums import AncestorSums
from bisector.model.commit_graph import CommitGraph

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_MASK_BYTES = 32 << 20
"""Ancestor masks are kept up to this total, one bit a commit, the newest: 2,400 in a range of 111,556."""
MAX_PARTITIONS = 8
"""Partitions kept: that of all tested commits, and those of the commits tested before each certificate."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Classes of candidates: those of one class are contained in the same tested commits.

    label: (n,) class of each candidate, -1 where the prior weight is zero; contains: (C, tested) True where
    the tested commit contains the class; prior: (C,) sums to one; size: (C,) number of candidates.
    """

    label: Ints
    contains: Mask
    prior: Floats
    size: Ints


def _splitmix(x: Ints) -> NDArray[np.uint64]:
    """Return well-mixed 64-bit keys that never change (SplitMix64: Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        z = (x.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


class CommitDag:
    """A CommitGraph with fast answers for the search. Answers about single commits are cached."""

    def __init__(self, graph: CommitGraph) -> None:
        self.graph = graph
        n = self.n = len(graph.parents)
        self.candidate: Mask = np.array(graph.candidate, dtype=bool)
        self.weights: Floats = self.candidate.astype(float)
        for commit, weight in graph.weights.items():
            if self.candidate[commit]:
                self.weights[commit] = max(0.0, weight)
        counts = np.fromiter((len(p) for p in graph.parents), dtype=np.int64, count=n)
        flat = np.fromiter((p for ps in graph.parents for p in ps), dtype=np.int64, count=int(counts.sum()))
        child = np.repeat(np.arange(n), counts)
        children = np.bincount(flat, minlength=n)
        single = counts == 1
        only = np.arange(n)
        only[child[single[child]]] = flat[single[child]]
        inner = single & (children[only] == 1)
        self._compress(inner, only)
        cross = ~inner[child]
        self._crossing = self.segment[child[cross]], self.segment[flat[cross]]
        self._masks: dict[int, NDArray[np.uint8]] = {}
        self._partitions: dict[tuple[int, ...], Partition] = {}
        self._bases: dict[int, bytes] = {}
        self.roots = (graph.good,) if not graph.merge_bases else graph.merge_bases
        self._boundary = np.flatnonzero(~self.candidate)
        self._contains_good: Mask | None = None
        self._boundary_mass: Floats | None = None

    def _compress(self, inner: Mask, only: Ints) -> None:
        """Number the segments in topological order, by pointer doubling over the inner links."""
        pointer = np.where(inner, only, np.arange(self.n))
        depth = inner.astype(np.int64)
        while True:
            further = pointer[pointer]
            if np.array_equal(further, pointer):
                break
            depth += depth[pointer]
            pointer = further
        heads = np.flatnonzero(~inner)
        self.segments = len(heads)
        self.segment: Ints = np.searchsorted(heads, pointer)
        self.position: Ints = depth
        self._order = np.lexsort((self.position, self.segment))
        self._starts = np.searchsorted(self.segment[self._order], np.arange(self.segments))

    @cached_property
    def _links(self) -> csr_matrix:
        """Return the links (segments, segments) from a segment to those of its first commit's parents."""
        from scipy.sparse import csr_matrix  # takes 0.2 s, which a linear history does without

        ones = np.ones(len(self._crossing[0]))  # SciPy would convert others, at each search in them
        return csr_matrix((ones, self._crossing), shape=(self.segments, self.segments))

    @cached_property
    def _sums(self) -> AncestorSums:
        """Return the sums over ancestors of segments."""
        pointers, parents = self._links.indptr.tolist(), self._links.indices.tolist()
        above = [parents[a:b] for a, b in itertools.pairwise(pointers)]
        return AncestorSums(above, np.bincount(self.segment, minlength=self.segments).tolist())

    def _reached(self, segment: int, *, upwards: bool = False) -> Mask:
        """Return the mask (n,) of the commits of all segments below a segment, or above it, and its own."""
        if self.segments == 1:
            return np.ones(self.n, dtype=bool)
        from scipy.sparse.csgraph import breadth_first_order

        links = self._links.T.tocsr() if upwards else self._links
        mask = np.zeros(self.segments, dtype=bool)
        mask[breadth_first_order(links, segment, return_predecessors=False)] = True
        reached: Mask = mask[self.segment]
        return reached

    # --- ancestors ---

    def ancestors(self, commit: int) -> Mask:
        """Return the mask (n,) of the ancestors of a commit and itself."""
        kept = self._masks.get(commit)
        if kept is not None:
            return np.unpackbits(kept, count=self.n).view(bool)
        s = int(self.segment[commit])
        mask = self._reached(s)
        mask &= (self.segment != s) | (self.position <= self.position[commit])
        if len(self._masks) >= max(64, 8 * MAX_MASK_BYTES // self.n):
            del self._masks[next(iter(self._masks))]
        self._masks[commit] = np.packbits(mask)
        return mask

    def is_ancestor(self, a: int, b: int) -> bool:
        """Return whether a is an ancestor of b, or b itself, as `git merge-base --is-ancestor` does."""
        return bool(self.ancestors(b)[a])

    # --- fork points ---

    def fork_base(self, commit: int) -> bytes:
        """Return an id of the part of the history below the range that a commit contains; b'' for good's.

        A branch that forked before good lacks part of good's history, so it has an unknown offset from good.
        Commits of one fork base share this offset.
        """
        base = self._bases.get(commit)
        if base is None:
            mask = self.ancestors(commit)
            inside = commit == self.graph.good or all(mask[r] for r in self.roots)
            base = b"" if inside else np.packbits(mask[self._boundary]).tobytes()
            self._bases[commit] = base
        return base

    def fork_numbers(self, commits: tuple[int, ...]) -> Ints:
        """Return the fork base of each commit as a number (T,), 0 for good's."""
        bases: dict[bytes, int] = {b"": 0}
        return np.array([bases.setdefault(self.fork_base(c), len(bases)) for c in commits])

    def ancestors_of_same_base(self, commit: int) -> Mask:
        """Return the mask (n,) of the ancestors of a commit, itself included, that have its fork base."""
        if self._boundary_mass is None:
            self._boundary_mass = self.mass((~self.candidate).astype(float))
        # An ancestor's base is a part of the commit's, and the same where it is as large.
        result: Mask = self.ancestors(commit) & (self._boundary_mass > self._boundary_mass[commit] - 0.5)
        return result

    def contains_good(self) -> Mask:
        """Return the mask (n,) of the commits that contain all of good's history."""
        if self._contains_good is None:
            mask = np.ones(self.n, dtype=bool)
            for root in self.roots:
                s = int(self.segment[root])
                below = self._reached(s, upwards=True)
                below &= (self.segment != s) | (self.position >= self.position[root])
                mask &= below
            mask[self.graph.good] = True
            self._contains_good = mask
        return self._contains_good

    # --- classes ---

    def partition(self, tested: tuple[int, ...]) -> Partition:
        """Return the classes of candidates of positive weight, by the tested commits that contain them."""
        known = self._partitions.get(tested)
        if known is not None:
            return known
        keys = _splitmix(np.array(tested))
        signature = np.zeros(self.n, dtype=np.uint64)
        for key, commit in zip(keys, tested, strict=True):
            signature[self.ancestors(commit)] ^= key
        chosen = np.flatnonzero(self.weights > 0)
        _, first, inverse = np.unique(signature[chosen], return_index=True, return_inverse=True)
        label = np.full(self.n, -1, dtype=np.int64)
        label[chosen] = inverse
        shown = chosen[first]
        contains = np.empty((len(shown), len(tested)), dtype=bool)
        for j, commit in enumerate(tested):
            contains[:, j] = self.ancestors(commit)[shown]
        prior = np.bincount(inverse, self.weights[chosen]).astype(float)
        size = np.bincount(inverse)
        total = prior.sum()
        result = Partition(label, contains, prior / total if total > 0 else prior, size)
        if len(self._partitions) >= MAX_PARTITIONS:
            del self._partitions[next(iter(self._partitions))]
        self._partitions[tested] = result
        return result

    # --- masses ---

    def mass(self, weights: Floats) -> Floats:
        """Return for every commit the sum (n,) of the weights (n,) of its ancestors, itself included."""
        ordered = weights[self._order]
        running = np.cumsum(ordered)
        start = running[self._starts] - ordered[self._starts]
        result = np.empty(self.n)
        result[self._order] = running - np.repeat(start, np.diff(np.append(self._starts, self.n)))
        if self.segments == 1:
            return result
        own = np.bincount(self.segment, weights, minlength=self.segments).astype(float)
        result += (self._sums.sums(own) - own)[self.segment]
        return result
