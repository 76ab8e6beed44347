"""Evidence for the search: which commits may have changed the functions that two kernels execute differently.

A commit that changes a function whose count differs is a suspect by its share of all differences. One that
changes a function whose own count is the same, but for which another one executes more or less, is one by
that share: it may call it with other arguments. One that touches a Kconfig, a Makefile or a header may have
changed any function: that says nothing of it. All others are less suspect, and never free: what a function
writes may decide how often others are called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bisector.linux.exact_profile import ExactComparison
from bisector.linux.profile import source_name
from bisector.model.facts import TouchedCode

Kind = Literal["differs", "calls", "anything", "elsewhere"]

WEIGHTS: Mapping[Kind, float] = {"differs": 8.0, "calls": 2.0, "anything": 1.0, "elsewhere": 0.5}
"""Weights of being a culprit; judgements, not fits. What may have changed anything is the measure. Elsewhere
is half of it, since a commit there may still decide how often all else runs. One whose own function differs
is three bits more suspect. One that calls what differs is only one bit more: a function that passes on other
arguments mostly executes another number of instructions itself, so that it differs, too, and many callers of
one that grew have no part in it. The share is no part of the weight: an innocent commit may have most of it.
"""


@dataclass(frozen=True, slots=True)
class CommitEvidence:
    """One commit. functions: those of kind that it changes; share: of all differences, in those that differ,
    or in what others execute for those that call them.
    """

    sha: str
    kind: Kind
    share: float
    functions: tuple[str, ...] = ()


def weigh(touched: Iterable[TouchedCode], found: ExactComparison) -> list[CommitEvidence]:
    """Return the evidence on each commit, in the order given."""
    changes: defaultdict[str, float] = defaultdict(float)
    calls: defaultdict[str, float] = defaultdict(float)
    for one in found.changes:
        if one.symbol.origin == "kernel" and one.change:
            changes[source_name(one.symbol.name)] += abs(one.change)
            for caller in one.callers:
                calls[source_name(caller.caller)] += abs(caller.change)
    grounds: tuple[tuple[Kind, Mapping[str, float]], ...] = (
        ("differs", changes),
        ("calls", {name: value for name, value in calls.items() if value}),
    )
    total = sum(changes.values())
    return [_weigh(one, grounds, total) for one in touched]


def _weigh(
    one: TouchedCode, grounds: Sequence[tuple[Kind, Mapping[str, float]]], total: float
) -> CommitEvidence:
    names = {source_name(name) for name in one.functions}
    for kind, values in grounds:
        if own := sorted(names & values.keys(), key=lambda name: (-values[name], name)):
            return CommitEvidence(one.sha, kind, sum(values[name] for name in own) / total, tuple(own))
    return CommitEvidence(one.sha, "anything" if one.anything else "elsewhere", 0.0)
