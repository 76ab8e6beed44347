"""The commit graph as arrays: ancestors, classes of candidates that no trial separates, masses, fork points.

The graph is compressed into linear segments: maximal chains in which every commit but the first has one
parent and every commit but the last one child. Edges leave a segment only at its end and enter it only at its
start, so the ancestors of a commit are the segments reachable from its own, and the part of its own up to it.
All answers are vectors over the commits; nothing is kept for pairs of commits, only masks of commits that
were asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from bisector.model.records import CommitGraph

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT_SEGMENTS = 32768
"""Up to so many segments the reachability of all pairs is kept as bits (128 MiB at most)."""
SAMPLED_SEGMENTS = 4096
"""Above that, masses are estimated from so many segments drawn evenly by mass: an error below 0.1%."""
MASK_BYTES = 256 << 20
"""Ancestor masks are kept up to this size in all, the newest: 2,400 in a range of 111,556 commits."""
PARTITIONS = 8
"""Partitions kept: of all tested commits, and of those before each certificate."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Candidates grouped by which of the tested commits contain them.

    label: (n,) class of each candidate, -1 where the prior weight is zero; contains: (classes, tested) True
    where the tested commit contains the class; prior: (classes,) sums to one; size: (classes,) candidates in
    each.
    """

    label: Ints
    contains: Mask
    prior: Floats
    size: Ints


def _splitmix(x: Ints) -> NDArray[np.uint64]:
    """Return well-mixed 64-bit keys, the same for ever (Steele, Lea and Flood 2014, SplitMix64)."""
    with np.errstate(over="ignore"):
        z = (x.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


class CommitDag:
    """What the search asks of a CommitGraph. Answers about single commits are remembered."""

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
        self._links = csr_matrix(
            (
                np.ones(int(cross.sum()), dtype=np.int8),
                (self.segment[child[cross]], self.segment[flat[cross]]),
            ),
            shape=(self.segments, self.segments),
        )
        self._masks: dict[int, Mask] = {}
        self._partitions: dict[tuple[int, ...], Partition] = {}
        self._bases: dict[int, bytes] = {}
        self._reach: NDArray[np.uint8] | None = None
        self.roots = (graph.good,) if not graph.merge_bases else graph.merge_bases
        self._boundary = np.flatnonzero(~self.candidate)
        self._whole: Mask | None = None
        self._depth: Floats | None = None

    def _compress(self, inner: Mask, only: Ints) -> None:
        """Number the segments in topological order by pointer doubling over the inner links."""
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

    # --- ancestors ---

    def ancestors(self, commit: int) -> Mask:
        """Return the mask (n,) of the ancestors of a commit, itself included. Do not change it."""
        mask = self._masks.get(commit)
        if mask is None:
            s = int(self.segment[commit])
            if self.segments == 1:
                mask = self.position <= self.position[commit]
            else:
                reached: Any = breadth_first_order(self._links, s, return_predecessors=False)
                whole = np.zeros(self.segments, dtype=bool)
                whole[reached] = True
                mask = whole[self.segment]
                mask &= (self.segment != s) | (self.position <= self.position[commit])
            if len(self._masks) >= max(64, MASK_BYTES // self.n):
                del self._masks[next(iter(self._masks))]
            self._masks[commit] = mask
        return mask

    def is_ancestor(self, a: int, b: int) -> bool:
        """Return whether a is an ancestor of b or b itself, as `git merge-base --is-ancestor` does."""
        return bool(self.ancestors(b)[a])

    # --- fork points ---

    def fork_base(self, commit: int) -> bytes:
        """Return what names the history below the range that a commit has; b'' for that of good.

        Commits of one base share their unknown offset from good (a branch that forked before good lacks part
        of good's history).
        """
        base = self._bases.get(commit)
        if base is None:
            mask = self.ancestors(commit)
            inside = commit == self.graph.good or all(mask[r] for r in self.roots)
            base = b"" if inside else np.packbits(mask[self._boundary]).tobytes()
            self._bases[commit] = base
        return base

    def fork_numbers(self, commits: tuple[int, ...]) -> Ints:
        """Return the base of each commit as a number (T,), 0 for good's."""
        bases: dict[bytes, int] = {b"": 0}
        return np.array([bases.setdefault(self.fork_base(c), len(bases)) for c in commits])

    def ancestors_of_same_base(self, commit: int) -> Mask:
        """Return the mask (n,) of the ancestors of a commit, itself included, that have its base.

        Where masses are sampled (very many segments) a few with a smaller base may be among them.
        """
        if self._depth is None:
            self._depth = self.mass((~self.candidate).astype(float))
        # An ancestor's base is a part of the commit's, and the same where it is as large.
        result: Mask = self.ancestors(commit) & (self._depth > self._depth[commit] - 0.5)
        return result

    def contains_good(self) -> Mask:
        """Return the mask (n,) of the commits whose base is that of good."""
        if self._whole is None:
            reverse = csr_matrix(self._links.T)
            mask = np.ones(self.n, dtype=bool)
            for root in self.roots:
                s = int(self.segment[root])
                reached: Any = breadth_first_order(reverse, s, return_predecessors=False)
                found = np.zeros(self.segments, dtype=bool)
                found[reached] = True
                below = found[self.segment]
                below &= (self.segment != s) | (self.position >= self.position[root])
                mask &= below
            mask[self.graph.good] = True
            self._whole = mask
        return self._whole

    # --- classes ---

    def partition(self, tested: tuple[int, ...]) -> Partition:
        """Return the classes of candidates of positive weight by the tested commits that contain them."""
        known = self._partitions.get(tested)
        if known is not None:
            return known
        keys = _splitmix(np.array(tested, dtype=np.int64))
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
        prior = np.bincount(inverse, self.weights[chosen], minlength=len(shown)).astype(float)
        size = np.bincount(inverse, minlength=len(shown))
        total = prior.sum()
        result = Partition(label, contains, prior / total if total > 0 else prior, size)
        if len(self._partitions) >= PARTITIONS:
            del self._partitions[next(iter(self._partitions))]
        self._partitions[tested] = result
        return result

    # --- masses ---

    def mass(self, weights: Floats) -> Floats:
        """Return for every commit the sum of the weights (n,) of its ancestors, itself included: (n,)."""
        ordered = weights[self._order]
        running = np.cumsum(ordered)
        start = running[self._starts] - ordered[self._starts]
        result = np.empty(self.n)
        result[self._order] = running - np.repeat(start, np.diff(np.append(self._starts, self.n)))
        if self.segments == 1:
            return result
        below = self._below(np.bincount(self.segment, weights, minlength=self.segments).astype(float))
        result += below[self.segment]
        return result

    def _below(self, weights: Floats) -> Floats:
        """Return for every segment the weight of the other segments reachable from it: (segments,)."""
        if self.segments <= EXACT_SEGMENTS:
            if self._reach is None:
                self._reach = self._closure(np.arange(self.segments))
            reach, heavy, own = self._reach, weights, weights
        else:
            total = weights.sum()
            points = (np.arange(SAMPLED_SEGMENTS) + 0.5) / SAMPLED_SEGMENTS * total
            drawn = np.minimum(np.searchsorted(np.cumsum(weights), points), self.segments - 1)
            columns, times = np.unique(drawn, return_counts=True)
            reach = self._closure(columns)
            heavy = times * (total / SAMPLED_SEGMENTS)
            own = np.zeros(self.segments)
            own[columns] = heavy
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(float)
        padded = np.zeros(len(reach) * 8)
        padded[: len(heavy)] = heavy
        octets = padded.reshape(-1, 8)
        result = np.zeros(self.segments)
        for j in np.flatnonzero(octets.any(axis=1)):
            result += (bits @ octets[j])[reach[j]]
        return result - own

    def _closure(self, columns: Ints) -> NDArray[np.uint8]:
        """Return, packed along the first axis, which of the chosen segments each segment reaches or is."""
        size = (len(columns) + 7) // 8
        rows = np.zeros((self.segments, size), dtype=np.uint8)
        index = np.arange(len(columns))
        rows[columns, index // 8] |= (128 >> (index % 8)).astype(np.uint8)
        pointers, parents = self._links.indptr.tolist(), self._links.indices.tolist()
        for s in range(self.segments):
            until = min(size, s // 8 + 1)  # a segment reaches only earlier ones
            row = rows[s, :until]
            for p in parents[pointers[s] : pointers[s + 1]]:
                row |= rows[p, :until]
        return np.ascontiguousarray(rows.T)
