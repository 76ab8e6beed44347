"""From what `git rev-list --parents` prints to a CommitGraph: pure text and sets, no repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from bisector.errors import InfrastructureError
from bisector.model.commit_graph import CommitGraph

_UNTOUCHED_BAD_WEIGHT = 1e-6
"""Prior weight of a bad end that touches none of the paths asked for: it has to be in the graph, but is
hardly ever the culprit."""


def parse_rev_list(lines: str, *, first_parent: bool) -> dict[str, tuple[str, ...]]:
    """Return commit -> parents, oldest first, of `rev-list --topo-order --reverse --parents`.

    A parent named twice (git allows it) is kept once. Raises InfrastructureError for what git does not print.
    """
    parents: dict[str, tuple[str, ...]] = {}
    last = 2 if first_parent else None
    for line in filter(None, lines.split("\n")):
        words = line.split(" ")
        if "" in words or not line.isprintable():
            raise InfrastructureError(f"git listed {line[:80]!r} among the commits", cure="git fsck")
        parents[words[0]] = tuple(dict.fromkeys(words[1:last]))
    return parents


def assemble_graph(
    parents: Mapping[str, Sequence[str]],
    good: str,
    bad: str,
    bases: Sequence[str] = (),
    descendants: Mapping[str, Set[str]] | None = None,
) -> CommitGraph:
    """Return the graph of the candidates in `parents` (parents before children) and of their boundary.

    bad: when it is not among the candidates (it touches none of the paths asked for) it becomes the last one,
    child of all that have no child, with next to no weight. bases: merge bases of good and bad, if good is no
    ancestor of bad. descendants: for good, or each base: the commits above it up to bad. Where a history
    simplified to some paths or to first parents lost that link, it is put back, for a commit that contains
    good's changes must not look as if it lacked them.
    """
    links: dict[str, Sequence[str]] = dict(parents)
    weights: dict[str, float] = {}
    if bad not in links:
        inner = {parent for above in links.values() for parent in above}
        links[bad] = [sha for sha in links if sha not in inner]
        weights[bad] = _UNTOUCHED_BAD_WEIGHT
    for end, above in (descendants or {}).items():
        linked = {end}
        for sha, direct in links.items():
            if sha not in above:
                continue
            if not linked.intersection(direct):
                links[sha] = (*direct, end)
            linked.add(sha)
    outside: dict[str, None] = dict.fromkeys((good, *bases))
    outside |= {parent: None for direct in links.values() for parent in direct if parent not in links}
    nodes = [*outside, *links]
    index = {sha: number for number, sha in enumerate(nodes)}
    return CommitGraph(
        shas=tuple(nodes),
        parents=((),) * len(outside) + tuple(tuple([index[p] for p in direct]) for direct in links.values()),
        candidate=(False,) * len(outside) + (True,) * len(links),
        good=index[good],
        bad=index[bad],
        merge_bases=tuple(index[base] for base in bases),
        weights={index[sha]: weight for sha, weight in weights.items()},
    )


def candidates_with_own_root(graph: CommitGraph) -> list[int]:
    """Return the candidates without a boundary commit among their ancestors: they have another root."""
    rooted = [not candidate for candidate in graph.candidate]
    for number, above in enumerate(graph.parents):
        rooted[number] = rooted[number] or any(rooted[p] for p in above)
    return [number for number, known in enumerate(rooted) if not known]
