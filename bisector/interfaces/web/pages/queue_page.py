"""The queue: what is executed, what waits for what, and the forms that change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from bisector.interfaces.web.pages.page_view import Looking, Page, add_page
from bisector.model.stored_bisection import workload_name
from bisector.report.row_words.queue_words import doing_now, expected, priority_text

router = APIRouter(include_in_schema=False)

_COLUMNS = (
    "place id status priority owner created workload good bad testbeds measures_on prepares_on builds "
    "waits_for unusable capped boots left_seconds expected_begin expected_end"
)


def queue_rows(queue: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the queue with what people read of them."""
    return [
        {
            **row,
            "workload_name": workload_name(row["workload"]),
            "priority_text": priority_text(row["priority"]),
            "end": expected(row["expected_end"], queue["now"]),
            "doing": doing_now(row, queue["now"]),
        }
        for row in queue["bisections"]
    ]


@add_page(router, "/queue", follows=True)
def show_queue(view: Looking) -> Page:
    """Show the queue in the order in which it is served."""
    queue = view.operations.queue()
    context = {"running": queue_rows(queue), "executor": queue["executor"]}
    return Page("queue.html.j2", "Queue", queue, queue["bisections"], context, _COLUMNS)
