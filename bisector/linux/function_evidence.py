"""Evidence for the search: which commits may have changed the functions that two kernels execute differently.

A commit that changes a function whose count differs is a suspect by its share of all differences. One that
touches a Kconfig, a Makefile or a header may have changed any function: that says nothing of it. All others
are less suspect, and never free: a function may call another one more often without being changed itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bisector.linux.exact_profile import ExactComparison
from bisector.linux.profile import source_name
from bisector.model.facts import TouchedCode

Kind = Literal["differs", "anything", "elsewhere"]
_ORDER: Mapping[Kind, int] = {"differs": 0, "anything": 1, "elsewhere": 2}


@dataclass(frozen=True, slots=True)
class CommitEvidence:
    """One commit. share: of all differences, in functions that it changes itself; functions: those."""

    sha: str
    kind: Kind
    share: float
    functions: tuple[str, ...] = ()


def weigh(touched: Iterable[TouchedCode], found: ExactComparison) -> list[CommitEvidence]:
    """Return the evidence on each commit, in the order given."""
    changes: dict[str, float] = {}
    for one in found.changes:
        if one.symbol.origin == "kernel" and one.change:
            name = source_name(one.symbol.name)
            changes[name] = changes.get(name, 0.0) + abs(one.change)
    total = sum(changes.values())
    return [_weigh(one, changes, total) for one in touched]


def _weigh(one: TouchedCode, changes: Mapping[str, float], total: float) -> CommitEvidence:
    names = {source_name(name) for name in one.functions} & changes.keys()
    own = sorted(names, key=lambda name: (-changes[name], name))
    share = sum(changes[name] for name in own) / total if total else 0.0
    kind: Kind = "differs" if own else "anything" if one.anything else "elsewhere"
    return CommitEvidence(one.sha, kind, share, tuple(own))


def rank(evidence: Sequence[CommitEvidence], sha: str) -> tuple[int, int]:
    """Return the first and the last rank (from 1) that a commit may have; equal evidence is not ordered.

    Of commits that may have changed anything nothing is known: they stand between the two others.
    """
    own = next(one for one in evidence if one.sha == sha)
    before = sum(1 for one in evidence if _key(one) < _key(own))
    same = sum(1 for one in evidence if _key(one) == _key(own))
    return before + 1, before + same


def _key(one: CommitEvidence) -> tuple[int, float]:
    return _ORDER[one.kind], -one.share
