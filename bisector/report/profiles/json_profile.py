"""Two profiles side by side for machines, one JSON object.

Shares are fractions of each profile's own total (0.01 = 1%), null where a symbol is not in a profile; points
are their difference. `trees` hold the chosen symbols' callers and callees, line by line with their depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bisector.linux.annotated_code import AnnotatedFunction
from bisector.linux.call_graph import Branch
from bisector.linux.exact_profile import ExactComparison
from bisector.linux.profile import Profile, ProfileComparison
from bisector.model.printable import printable_json
from bisector.report.profiles import annotated_table, exact_table
from bisector.report.profiles.profile_table import sentences

SCHEMA_VERSION = 1


def render(
    found: ProfileComparison,
    trees: Sequence[tuple[str, list[Branch], list[Branch]]] = (),
    exact: ExactComparison | None = None,
    annotated: Sequence[AnnotatedFunction] = (),
) -> str:
    """Return the JSON text. exact: where both profiles are counted. annotated: functions of either."""
    value = {
        "schema": SCHEMA_VERSION,
        "profiles": [_profile(p) for p in (found.a, found.b)],
        "symbols": [
            {
                "name": line.symbol.name,
                "origin": line.symbol.origin,
                "shares": [line.a, line.b],
                "points": line.change,
                "at_least": line.bound,
                "certain": line.certain,
                "with_callees": list(line.whole),
                "touched": line.touched,
            }
            for line in found.symbols
        ],
        "calls": [
            {
                "name": row.symbol.name,
                "calls": list(row.calls),
                "change": row.change,
                "microseconds_a_call": list(row.each),
                "touched": row.touched,
            }
            for row in found.calls
        ],
        "trees": [
            {"symbol": name, "callers": _branches(callers), "callees": _branches(callees)}
            for name, callers, callees in trees
        ],
        "exact": None if exact is None else exact_table.as_json(exact),
        "annotated": [annotated_table.as_json(one) for one in annotated],
        "touched_but_absent": list(found.absent),
        "sentences": sentences(found),
        "warnings": list(found.warnings),
    }
    return printable_json(value) + "\n"


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "event": profile.event,
        "samples": profile.samples or None,
        "smallest_listed": profile.cut or None,
    }


def _branches(branches: Sequence[Branch]) -> list[dict[str, Any]]:
    return [
        {"depth": b.depth, "name": b.symbol.name, "origin": b.symbol.origin, "shares": [b.a, b.b]}
        for b in branches
    ]
