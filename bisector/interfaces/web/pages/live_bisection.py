"""The page of one bisection: the sections of its report, what happens while it runs, and its forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from bisector.app import load_report
from bisector.app.execution.current_status import current_status
from bisector.app.operations.operations import Values
from bisector.interfaces.web.api import bisection_routes
from bisector.interfaces.web.api.bisection_routes import Identity, NewPriority, Why, event_answer, named
from bisector.interfaces.web.pages.page_view import (
    Changing,
    Fields,
    Looking,
    Page,
    add_page,
    back_to,
    checked,
    drawing,
    url,
)
from bisector.interfaces.web.visitors import Reading
from bisector.model.stored_bisection import OPEN, PRIORITIES, TO_EXECUTE
from bisector.report.html.self_contained import WHEN_SERVED
from bisector.report.row_words.queue_words import priority_text

router = APIRouter(prefix="/bisections", include_in_schema=False)

_SAMPLE_COLUMNS = "boot testbed commit purpose discarded failure index value flags warmup"
_PRIORITIES = [(number, word) for word, number in PRIORITIES.items()]


@router.get("/{id}/events")
async def follow(visitor: Reading, id: Identity) -> StreamingResponse:
    """Report what happens, as the API does."""
    return await event_answer(visitor.server, visitor.user, id, visitor.require_valid)


@router.get("/{id}/report.html")
def give_report(view: Looking, id: Identity) -> HTMLResponse:
    """Give the report as one file."""
    with drawing(view):
        page = view.operations.report_page(named(id))
    return HTMLResponse(page, headers={"Content-Security-Policy": WHEN_SERVED})


@router.get("/{id}/report.txt")
def give_text(view: Looking, id: Identity) -> PlainTextResponse:
    """Give the report as text."""
    with drawing(view):
        return PlainTextResponse(view.operations.report_text(named(id)))


@router.get("/{id}/log.txt")
def give_log(view: Looking, id: Identity) -> PlainTextResponse:
    """Give the steps as `git bisect replay` reads them."""
    with drawing(view):
        return PlainTextResponse(view.operations.log_text(named(id)))


@add_page(router, "/{id}")
def show_bisection(view: Looking, id: Identity) -> Page:
    """Show a bisection: its report so far, and what it does now."""
    wiring = view.wiring
    summary = load_report.find_summary(wiring, id) if named(id) else load_report.latest_summary(wiring)
    status = current_status(wiring, summary)

    def context() -> dict[str, Any]:
        drawn, is_current = view.request.app.state.drawn.find(wiring, summary.id)
        return {
            "drawn": drawn,
            "is_current": is_current,
            "summary": summary,
            "status": status,
            "is_open": status in OPEN,
            "follows": status in TO_EXECUTE,
            "priority_text": priority_text(summary.priority),
            "priorities": _PRIORITIES,
        }

    def values() -> Values:
        with drawing(view):
            return view.operations.report(summary.id)

    def rows() -> list[Values]:
        with drawing(view):
            return sample_rows(view.operations.trials(summary.id))

    return Page("bisection_live.html.j2", summary.id, values, rows, context, _SAMPLE_COLUMNS)


def sample_rows(trials: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each run of a bisection's trials."""
    return [
        {
            "boot": trial["boot"],
            "testbed": trial["testbed"],
            "commit": trial["commit"],
            "purpose": trial["purpose"],
            "discarded": trial["discarded"],
            "failure": trial["failure"],
            **run,
        }
        for trial in trials
        for run in trial["runs"]
    ]


@router.post("/{id}/pause")
def pause(view: Changing, id: Identity, fields: Fields) -> Response:
    """Let a bisection rest."""
    made = bisection_routes.pause(view.request, view.visitor.user, id, checked(Why, fields))
    return back_to(view, fields, url("bisections", made["id"]))


@router.post("/{id}/resume")
def resume(view: Changing, id: Identity, fields: Fields) -> Response:
    """Queue a bisection that rests."""
    made = bisection_routes.resume(view.request, view.visitor.user, id, checked(Why, fields))
    return back_to(view, fields, url("bisections", made["id"]))


@router.post("/{id}/cancel")
def cancel(view: Changing, id: Identity, fields: Fields) -> Response:
    """End a bisection for good."""
    made = bisection_routes.cancel(view.request, view.visitor.user, id, checked(Why, fields))
    return back_to(view, fields, url("bisections", made["id"]))


@router.post("/{id}/priority")
def set_priority(view: Changing, id: Identity, fields: Fields) -> Response:
    """Serve a bisection before or after others."""
    made = bisection_routes.set_priority(view.request, view.visitor.user, id, checked(NewPriority, fields))
    return back_to(view, fields, url("bisections", made["id"]))
