"""The list of bisections, the latest first, a part at a time, and the form that starts one."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Query
from fastapi.responses import Response

from bisector.app.execution.current_status import current_statuses, is_ended_night, latest_searches
from bisector.app.operations.bisection_values import list_row
from bisector.app.operations.operations import Values
from bisector.interfaces.web.api import bisection_routes
from bisector.interfaces.web.pages.listed_choices import choices_of, filled_fields
from bisector.interfaces.web.pages.page_view import (
    Changing,
    Fields,
    Looking,
    Page,
    View,
    add_page,
    back_to,
    checked,
    url,
)
from bisector.model.stored_bisection import ENDED, OPEN, Summary
from bisector.schemas.remote_request import RemoteRequest

router = APIRouter(include_in_schema=False)

ROWS_PER_PART = 50
"""Rows of one part of the list: chosen, as for a tall terminal."""
_MOST_PAGES = 10_000
"""Parts of the list that can be asked for: chosen, 500,000 bisections."""
_LONGEST = 200
"""Characters of a text that is searched for: chosen, longer than an id or the name of a workload."""
_Status = Literal[
    "", "open", "ended", "queued", "running", "paused", "interrupted", "failed", "done", "cancelled"
]
"""Statuses that a reader may ask for; '' for any."""
_STATUSES = {"open": OPEN, "ended": ENDED}
"""Words that stand for several statuses."""
_KILLED = ("running", "interrupted")
"""The stored and the true status of a bisection whose process was killed."""
COLUMNS = "id status started workload good bad result exit_code priority owner last_action"

Text = Annotated[str, Query(max_length=_LONGEST)]


@add_page(router, "/bisections")
def show_bisections(
    view: Looking,
    status: _Status = "",
    owner: Text = "",
    text: Text = "",
    all: bool = False,
    page: Annotated[int, Query(ge=1, le=_MOST_PAGES)] = 1,
) -> Page:
    """Show the bisections that fit. text: in the id, the workload, the ends or the culprits.

    all: with nights of series that have ended, as `list --all`.
    """
    fitting = _fitting(view, status, owner, text, page * ROWS_PER_PART + 1, nights=all)
    shown = fitting[(page - 1) * ROWS_PER_PART : page * ROWS_PER_PART]
    statuses = current_statuses(view.wiring, shown)
    rows: list[Values] = [list_row(one, now) for one, now in zip(shown, statuses, strict=True)]
    context = {
        "rows": rows,
        "more": len(fitting) > page * ROWS_PER_PART,
        "asked": {"status": status, "owner": owner, "text": text, "all": "1" if all else "", "page": page},
        "statuses": [(name, name) for name in get_args(_Status) if name],
        "choices": choices_of(view),
    }
    return Page("bisections.html.j2", "Bisections", rows, rows, context, COLUMNS)


@router.post("/bisections")
def start(view: Changing, fields: Fields) -> Response:
    """Queue a bisection, and lead to its page."""
    asked: dict[str, object] = {**filled_fields(fields)}
    for name, many in (("testbed", "testbeds"), ("notify", "notify")):
        if name in asked:
            asked[many] = (asked.pop(name),)
    made = bisection_routes.start(view.request, view.visitor.user, checked(RemoteRequest, asked))
    return back_to(view, {}, url("bisections", made["id"]))


def _fitting(view: View, status: str, owner: str, text: str, most: int, *, nights: bool) -> list[Summary]:
    """Return the first bisections that fit. nights: with those that have ended."""
    statuses = _KILLED if status in _KILLED else _STATUSES.get(status, (status,) if status else ())
    store = view.wiring.store
    if not nights and not (status or owner or text):
        return list(latest_searches(store, most))
    simple = nights and not owner and not text and statuses is not _KILLED
    found = store.list(statuses=statuses, limit=most if simple else None)
    if statuses is _KILLED:
        now = current_statuses(view.wiring, found)
        found = [one for one, current in zip(found, now, strict=True) if current == status]
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
