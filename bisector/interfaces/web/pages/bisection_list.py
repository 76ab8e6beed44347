"""The list of bisections, the latest first, a part at a time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from bisector.app.execution.current_status import current_statuses, is_ended_night, latest_searches
from bisector.app.operations.bisection_values import list_row
from bisector.app.operations.operations import Values
from bisector.interfaces.web.pages.page_view import Looking, Page, View, add_page
from bisector.model.stored_bisection import ENDED, OPEN, Summary

router = APIRouter(include_in_schema=False)

ROWS = 50
"""Of a part of the list."""
_MOST_PAGES = 10_000
_LONGEST = 200
"""Characters that are looked for."""
_STATUSES = {"open": OPEN, "ended": ENDED}
"""Words that stand for several statuses."""

Text = Annotated[str, Query(max_length=_LONGEST)]


@add_page(router, "/bisections")
def show_bisections(
    view: Looking,
    status: Text = "",
    owner: Text = "",
    text: Text = "",
    all: bool = False,
    page: Annotated[int, Query(ge=1, le=_MOST_PAGES)] = 1,
) -> Page:
    """Show the bisections that fit. text: in the id, the workload, the ends or the culprits.

    all: with nights of series that have ended, as `list --all`.
    """
    fitting = _fitting(view, status, owner, text, page * ROWS + 1, nights=all)
    shown = fitting[(page - 1) * ROWS : page * ROWS]
    statuses = current_statuses(view.wiring, shown)
    rows: list[Values] = [list_row(one, now) for one, now in zip(shown, statuses, strict=True)]
    names = ["open", "ended", "queued", "running", "paused", "interrupted", "failed", "done", "cancelled"]
    context = {
        "rows": rows,
        "more": len(fitting) > page * ROWS,
        "asked": {"status": status, "owner": owner, "text": text, "all": "1" if all else "", "page": page},
        "statuses": [(name, name) for name in names],
    }
    return Page("bisections.html.j2", "Bisections", rows, rows, context)


def _fitting(view: View, status: str, owner: str, text: str, most: int, *, nights: bool) -> list[Summary]:
    """Return the first bisections that fit. nights: with those that have ended."""
    statuses = _STATUSES.get(status, (status,) if status else ())
    store = view.wiring.store
    if not nights and not (status or owner or text):
        return list(latest_searches(store, most))
    simple = nights and not owner and not text
    found = store.list(statuses=statuses, limit=most if simple else None)
    words = text.casefold().split()
    fitting = (
        one
        for one in found
        if (nights or not is_ended_night(one))
        and (not owner or one.owner == owner)
        and all(word in _searched(one) for word in words)
    )
    return [one for one, _ in zip(fitting, range(most), strict=False)]


def _searched(one: Summary) -> str:
    found = (one.id, one.workload, one.good, one.bad, one.ending.value if one.ending else "", *one.culprits)
    return " ".join(word for word in found if word).casefold()
