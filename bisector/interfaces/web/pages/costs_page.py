"""The page of costs: machine hours a culprit, by owner, by series and by workload."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from bisector.app.execution.current_status import current_statuses
from bisector.app.operations.spent_hours import SpentTotals, added_up
from bisector.interfaces.web.pages.page_view import Looking, Page, add_page, drawing
from bisector.model.series import series_of
from bisector.model.stored_bisection import workload_name

router = APIRouter(include_in_schema=False)

_DAY_SECONDS = 86400.0
_MOST_DAYS = 3650
"""Ten years: chosen, longer than any database has been used."""
_MOST_BISECTIONS = 500
"""Bisections that are added up, the latest: reading one for the first time takes 20 ms, so 10 s for all."""
_DEAREST = 20
"""Rows of the most expensive bisections: chosen, about a screen."""
_COLUMNS = "group name bisections culprits build_hours machine_hours machine_hours_a_culprit"


@add_page(router, "/costs")
def show_costs(view: Looking, days: Annotated[int, Query(ge=1, le=_MOST_DAYS)] = 30) -> Page:
    """Show what the bisections that began in the last days cost."""
    wiring, spent_hours = view.wiring, view.request.app.state.spent_hours
    since = wiring.coordinator.now() - days * _DAY_SECONDS
    found = [one for one in wiring.store.list() if one.created >= since]
    with drawing(view):
        costs = [(one, spent_hours.of(wiring.store, one)) for one in found[:_MOST_BISECTIONS]]
    total = sum((spent for _, spent in costs), SpentTotals())
    of_series = [cost for cost in costs if series_of(cost[0].owner)]
    groups = {
        "owner": added_up(costs, lambda one: one.owner or "unknown"),
        "series": added_up(of_series, lambda one: series_of(one.owner)),
        "workload": added_up(costs, lambda one: workload_name(one.workload)),
    }
    rows = [_row(kind, name, spent) for kind, group in groups.items() for name, spent in group]
    dearest = sorted(costs, key=lambda cost: -cost[1].machine)[:_DEAREST]
    statuses = current_statuses(wiring, [one for one, _ in dearest])
    values = {
        "days": days,
        "counted": len(costs),
        "of": len(found),
        "total": _row("", "", total),
        "groups": rows,
    }
    context: dict[str, Any] = {
        **values,
        "total": total,
        "groups": groups,
        "dearest": [
            (one, status, workload_name(one.workload), spent)
            for (one, spent), status in zip(dearest, statuses, strict=True)
        ],
    }
    return Page("costs.html.j2", "Costs", values, rows, context, _COLUMNS)


def _row(kind: str, name: str, spent: SpentTotals) -> dict[str, Any]:
    return {
        "group": kind,
        "name": name,
        "bisections": spent.bisections,
        "culprits": spent.culprits,
        "build_hours": spent.build,
        "machine_hours": spent.machine,
        "machine_hours_a_culprit": spent.hours_a_culprit,
    }
