"""The first page: what runs, what waits, open alerts, testbeds out of use, what ended lately."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from bisector.app.execution.current_status import latest_searches
from bisector.app.operations.bisection_values import list_row
from bisector.interfaces.web.pages.alert_pages import with_words
from bisector.interfaces.web.pages.bisection_list import COLUMNS
from bisector.interfaces.web.pages.page_view import Looking, Page, add_page
from bisector.interfaces.web.pages.queue_page import queue_rows
from bisector.model.alerts import AlertFilter

router = APIRouter(include_in_schema=False)

_ALERTS = 10
_ENDED = 10
"""Rows of open alerts, and of what ended lately without nights, which would fill it. Chosen, so that the page
fits on a screen; the whole lists are pages of their own."""


@add_page(router, "/", "/overview", follows=True)
def show_overview(view: Looking) -> Page:
    """Show what goes on."""
    queue = view.operations.queue()
    rows = queue_rows(queue)
    running = [row for row in rows if row["status"] == "running"]
    waiting = [row for row in rows if row["status"] != "running"]
    testbeds = view.operations.testbeds()["testbeds"]
    sick = [row for row in testbeds if row["state"] != "good"]
    alerts = view.operations.alerts(AlertFilter(open=True), after="", limit=_ALERTS)
    searches = latest_searches(view.wiring.store, _ENDED, statuses=("done", "failed"))
    ended = [list_row(one, one.status) for one in searches]
    values: dict[str, Any] = {
        "executor": queue["executor"],
        "running": [row["id"] for row in running],
        "waiting": [row["id"] for row in waiting],
        "alerts": alerts["alerts"],
        "testbeds": sick,
        "ended": ended,
        "now": queue["now"],
    }
    tiles = [
        (len(running), "running", "/queue"),
        (len(waiting), "waiting", "/queue"),
        (alerts["count"], "open alerts", "/alerts"),
        (f"{len(testbeds) - len(sick)} of {len(testbeds)}", "testbeds in use", "/testbeds"),
    ]
    context = {"alerts": with_words(alerts["alerts"]), "more_alerts": alerts["count"] - len(alerts["alerts"])}
    context |= {"values": values, "tiles": tiles, "running": running, "waiting": waiting, "sick": sick}
    return Page("overview.html.j2", "Overview", values, ended, {**context, "ended": ended}, COLUMNS)
