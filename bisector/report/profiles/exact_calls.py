"""Callers of the functions that changed, with counts, and trees of chosen ones: counted, not sampled."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.linux.call_graph import Branch
from bisector.linux.exact_profile import CallerCounts, ExactChange, ExactComparison
from bisector.report import phrases
from bisector.report.columns import align

_FUNCTIONS, _CALLERS = 6, 3
"""How many of the functions that changed most are shown, and how many callers of each: chosen."""
_SHARE = 0.1
"""Least share of a function's change that a shown caller accounts for: chosen, less explains nothing."""

_SHARE_OF_EFFECT = 0.01
"""Least growth of a function that is shown, as a share of the effect: chosen, less explains nothing of it."""

Trees = Sequence[tuple[str, list[Branch], list[Branch]]]


def sentences(found: ExactComparison) -> list[str]:
    """Return for whom the functions that grew most execute more; nothing where calls were not followed."""
    least = _SHARE_OF_EFFECT * abs(found.effect)
    grown = [one for one in found.changes if one.change > least and one.callers][:_FUNCTIONS]
    return [sentence for sentence in map(_called_from, grown) if sentence]


def _called_from(one: ExactChange) -> str:
    some = [x for x in one.callers if x.change >= _SHARE * one.change][:_CALLERS]
    if not some:
        return ""
    names = ", ".join(f"{x.caller} ({x.change:+,.0f})" for x in some)
    return f"{one.symbol.name} ({one.change:+,.0f}) is called from {names}."


def lines(found: ExactComparison) -> list[str]:
    """Return the same as wrapped lines, behind an empty one."""
    found_calls = sentences(found)
    return ["", *(line for one in found_calls for line in phrases.wrap(one, ""))] if found_calls else []


def head(found: ExactComparison) -> tuple[str, ...]:
    """Return the titles of the columns of `rows`."""
    return "CALLS A RUN", found.a.name, found.b.name, "CHANGE"


def rows(found: ExactComparison, top: int) -> list[tuple[str, ...]]:
    """Return how often the functions that changed most are called; empty where that was not counted."""
    listed = [one for one in found.changes[:top] if one.change and any(one.calls)]
    if not (found.a.calls and found.b.calls):
        return []
    return [(one.symbol.name, *(f"{x:,.0f}" for x in one.calls), _signed(one.calls)) for one in listed]


def _signed(pair: tuple[float, float]) -> str:
    return f"{pair[1] - pair[0]:+,.0f}"


def tree_lines(found: ExactComparison, trees: Trees) -> list[str]:
    """Return the callers and the callees of chosen functions, with instructions of a run."""
    out: list[str] = []
    for name, callers, callees in trees:
        if not callers and not callees:
            out += ["", f"{name}: in no path of calls of either profile"]
        for title, branches in (("is called by", callers), ("calls", callees)):
            if branches:
                table = [_tree_row(found, branch) for branch in branches]
                out += ["", *align((f"{name} {title}", *head(found)[1:]), table, right=True)]
    return out


def _tree_row(found: ExactComparison, branch: Branch) -> tuple[str, ...]:
    pair = branch.a * found.a.total, branch.b * found.b.total
    return ("  " * branch.depth + branch.symbol.name, *(f"{x:,.0f}" for x in pair), _signed(pair))


def as_json(callers: Sequence[CallerCounts]) -> list[dict[str, object]]:
    """Return the callers of one function for machines."""
    return [{"name": one.caller, "counts": [one.a, one.b], "change": one.change} for one in callers]
