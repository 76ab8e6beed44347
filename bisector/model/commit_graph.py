"""The history under search. Commits are indices; names of commits belong to the edges of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CommitGraph:
    """The history under search, topologically sorted: every parent has a smaller index than its child.

    Nodes are the candidates (reachable from bad, not from good) and the boundary: good itself, the parents of
    candidates that are not candidates (fork points), and merge bases. `parents[i]` holds only nodes of
    this graph; a boundary node has none (its history is outside), a root commit has none either.

    shas: full commit ids; candidate: True where the commit may be the culprit; good, bad: indices;
    merge_bases: empty when good is an ancestor of bad; untestable: index -> reason, known before any trial
    (not Linux, `--skip`); weights: prior weight of a commit, missing means 1.
    """

    shas: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    candidate: tuple[bool, ...]
    good: int
    bad: int
    merge_bases: tuple[int, ...] = ()
    untestable: Mapping[int, str] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
