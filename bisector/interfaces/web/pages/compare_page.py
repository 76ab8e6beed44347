"""Two commits that bisections measured, or two bisections, side by side."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query

from bisector.app import load_report
from bisector.app.operations.operations import Values
from bisector.errors import RequestError
from bisector.interfaces.web.pages.kept_comparisons import KeptComparisons
from bisector.interfaces.web.pages.page_view import Looking, Page, View, add_page, drawing
from bisector.report import phrases, statements
from bisector.report.report_model import named
from bisector.report.sections import conditions
from bisector.report.trials import costs
from bisector.schemas.web_settings import REV

router = APIRouter(include_in_schema=False)

_PLACE = re.compile(rf"(?P<bisection>[A-Za-z0-9][A-Za-z0-9_.-]{{0,199}})(?::(?P<rev>{REV}))?")
_LONGEST = 500
"""Characters of a place: the longest names of a bisection and of a commit."""

Place = Annotated[str, Query(max_length=_LONGEST)]


@add_page(router, "/compare")
def show_comparison(view: Looking, a: Place = "", b: Place = "") -> Page:
    """Show BISECTION:REV against another one, or the two bisections."""
    context: dict[str, Any] = {"a": a, "b": b, "sections": None, "tabled": None, "names": ()}
    if not a and not b:
        return Page("compare.html.j2", "Compare", {}, (), context)
    places = [_parse(text) for text in (a, b)]
    if all(rev for _, rev in places):
        return _commits(view, places, context)
    if any(rev for _, rev in places):
        raise RequestError(
            "a commit cannot be compared with a bisection", cure="name two commits, ID:REV, or two bisections"
        )
    with drawing(view):
        sides = [_facts(view, identity) for identity, _ in places]
    rows = [{"what": name, "a": one, "b": sides[1][name]} for name, one in sides[0].items()]
    context = {
        **context,
        "tabled": [list(row.values()) for row in rows if row["what"] != "id"],  # they head the columns
        "names": [one["id"] for one in sides],
    }
    return Page("compare.html.j2", "Compare", sides, rows, context)


def _parse(text: str) -> tuple[str, str]:
    """Return the bisection and the commit of a place, '' without one. Raises RequestError."""
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise RequestError(
            f"'{text[:100]}' names neither a bisection nor a commit of one",
            cure="write ID, or ID:REV with the name or the beginning of the id of a commit",
        )
    return match["bisection"], match["rev"] or ""


def _commits(view: View, places: list[tuple[str, str]], context: dict[str, Any]) -> Page:
    """Return the comparison of two commits."""
    kept: KeptComparisons = view.request.app.state.compared
    found = kept.find(view.wiring, places, (context["a"], context["b"]))
    rows = [
        {"testbed": testbed["testbed"], "metric": metric["name"], "unit": metric["unit"], **_flat(metric)}
        for testbed in found.values["testbeds"]
        for metric in testbed["metrics"]
    ]
    title = " -> ".join(found.names)
    return Page("compare.html.j2", title, found.values, rows, {**context, "sections": found.sections})


def _flat(metric: Values) -> Values:
    """Return the comparison of a metric in one row."""
    (found,) = metric["comparisons"]
    effect = found["effect"] if found else {}
    return {key: effect.get(key) for key in ("low", "estimate", "high")} | {"p": found and found["p"]}


def _facts(view: View, identity: str) -> Values:
    """Return what is set side by side of a bisection."""
    material = load_report.load_material(view.wiring, identity)
    metric, conclusion = material.goal.metric, material.conclusion
    culprits = conclusion.culprits if conclusion else ()
    return {
        "id": material.id,
        "status": material.status,
        "result": statements.headline(material).removeprefix("Result: ").capitalize(),
        "found": "; ".join(", ".join(material.label(i) for i in named(f)) or "a set" for f in culprits),
        "effect": "; ".join(phrases.effect(f.effect, metric) for f in culprits),
        "range": conditions.question(material),
        "workload": str(material.request.get("workload", "")),
        "metric": f"{metric.name} in {metric.unit}, {metric.better} is better",
        "testbeds": ", ".join(dict.fromkeys(t.booted.testbed for t in material.trials)),
        **costs(material),
    }
