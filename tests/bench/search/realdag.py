"""A real commit graph from a file of graph lines, for the cell 'real DAG'.

One commit a line, parents first: id, time, parents (line numbers), tags, anything; tab-separated. Lines that
start with '#' or '=' are skipped.
"""

from __future__ import annotations

import lzma
from pathlib import Path

from bisector.model.commit_graph import CommitGraph


def read_range(path: Path, good: str, bad: str) -> CommitGraph:
    """Return the commits reachable from tag `bad` and not from tag `good`, with their boundary."""
    ids: list[str] = []
    parents: list[tuple[int, ...]] = []
    tags: dict[str, int] = {}
    with lzma.open(path, "rt") as lines:
        for line in lines:
            if line.startswith(("#", "=")):
                continue
            sha, _, above, names, *_ = line.rstrip("\n").split("\t")
            for name in names.split():
                tags[name] = len(ids)
            ids.append(sha)
            parents.append(tuple(dict.fromkeys(int(p) for p in above.split())))
    first, last = tags[good], tags[bad]
    old, new = _reach(parents, first), _reach(parents, last)
    inside = new - old
    nodes = sorted(inside | {first} | {p for c in inside for p in parents[c]})
    place = {c: i for i, c in enumerate(nodes)}
    return CommitGraph(
        shas=tuple(ids[c] for c in nodes),
        parents=tuple(tuple(place[p] for p in parents[c]) if c in inside else () for c in nodes),
        candidate=tuple(c in inside for c in nodes),
        good=place[first],
        bad=place[last],
        merge_bases=() if first in new else tuple(place[c] for c in nodes if c not in inside),
    )


def _reach(parents: list[tuple[int, ...]], commit: int) -> set[int]:
    seen, todo = {commit}, [commit]
    while todo:
        for p in parents[todo.pop()]:
            if p not in seen:
                seen.add(p)
                todo.append(p)
    return seen
