"""Changes of the effective configuration along the range, between the kernels that were built."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bisector.model.commit_graph import CommitGraph, short_name
from bisector.model.format import count
from bisector.report import phrases
from bisector.report.kernel_differences import changed_options
from bisector.report.report_model import Material

MAX_PRINTED_CHANGES = 20
"""Changes of options in the text; report.json has all of them."""


@dataclass(frozen=True)
class Drift:
    """An option that changed its value within the commits of `last`..`first` (indices, both built)."""

    name: str
    before: str
    after: str
    last: int
    first: int
    commits: int


def find(material: Material) -> tuple[Drift, ...]:
    """Return every change of an option with the shortest range known to contain it, the oldest first.

    Each built commit is compared with the nearest built ones among its ancestors.
    """
    options = _options(material)
    built = sorted(options)
    bit = {commit: number for number, commit in enumerate(built)}
    containing = _containing(material.graph, built)
    alike = Counter(containing)
    found: dict[tuple[str, str, str], Drift] = {}
    for first in built:
        below = [a for a in built if a != first and _has(containing[a], bit[first])]
        ancestors = sum(1 << bit[a] for a in below)
        nearest = [a for a in below if containing[a] & ancestors == 1 << bit[a]]
        for last in nearest:
            commits = sum(n for bits, n in alike.items() if _has(bits, bit[first]) > _has(bits, bit[last]))
            for name, before, after in changed_options(options[last], options[first]):
                drift = Drift(name, before, after, last, first, commits)
                other = found.get((name, before, after))
                if other is None or commits < other.commits:
                    found[name, before, after] = drift
    return tuple(sorted(found.values(), key=lambda d: (d.first, d.last, d.name)))


def _containing(graph: CommitGraph, built: Sequence[int]) -> list[int]:
    """Return for each commit in which built ones it is, itself included: bit k for `built[k]`.

    In plain Python: `model.dag` needs scipy, whose import would be most of the time of `perfbisect report`.
    """
    containing = [0] * len(graph.parents)
    for number, commit in enumerate(built):
        containing[commit] = 1 << number
    for commit in range(len(graph.parents) - 1, -1, -1):  # children come before their parents
        for parent in graph.parents[commit]:
            containing[parent] |= containing[commit]
    return containing


def _has(bits: int, number: int) -> bool:
    return bool(bits >> number & 1)


def _options(material: Material) -> dict[int, dict[str, str]]:
    """Return the known configurations by commit."""
    return {i: dict(kernel.options) for i, kernel in material.kernels.items() if kernel.options}


def lines(material: Material) -> list[str]:
    """Return the section of the report; empty with fewer than two known configurations."""
    built = len(_options(material))
    if built < 2:
        return []
    out = phrases.heading("Configuration along the range")
    drifts = find(material)
    if not drifts:
        return out + phrases.wrap(f"The {built} kernels built have the same effective .config.")
    stretch: tuple[int, int] | None = None
    for drift in drifts[:MAX_PRINTED_CHANGES]:
        if stretch != (drift.last, drift.first):
            stretch = (drift.last, drift.first)
            shas = material.graph.shas
            unit, several = material.goal.unit, count(drift.commits, material.goal.unit)
            within = f"with this {unit}" if drift.commits == 1 else f"within {several}"
            out.append(f"  {short_name(shas[drift.last])}..{short_name(shas[drift.first])}, {within}:")
        out.append(f"    CONFIG_{drift.name}: {drift.before} -> {drift.after}")
    if len(drifts) > MAX_PRINTED_CHANGES:
        out.append(f"  and {len(drifts) - MAX_PRINTED_CHANGES} more, all of them in report.json")
    return out


def render(material: Material) -> list[dict[str, Any]]:
    """Return the drifts as JSON values, commits as full ids."""
    shas = material.graph.shas
    return [{**dataclasses.asdict(d), "last": shas[d.last], "first": shas[d.first]} for d in find(material)]
