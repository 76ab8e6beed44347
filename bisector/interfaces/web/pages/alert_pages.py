"""Alerts of nightly series: the list, and one with its history and what people may say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from bisector.app.operations.operations import Values
from bisector.app.series.show_series import show_series
from bisector.errors import NotFound, RequestError
from bisector.interfaces.web.api import alert_routes
from bisector.interfaces.web.api.alert_routes import AlertId, NewAlertState
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
from bisector.model.alerts import TRIAGES, AlertFilter
from bisector.report.html import night_chart
from bisector.report.row_words.alert_words import (
    change_words,
    culprit_lines,
    end_names,
    range_words,
    result_words,
    size_words,
)

router = APIRouter(prefix="/alerts", include_in_schema=False)

ROWS_PER_PART = 50
"""Rows of one part of the list: chosen, as for a tall terminal."""
_COLUMNS = (
    "id state open series workload metric testbed repo last_good first_bad direction unit tip finding "
    "triage why group bisection culprits subject back_since duplicate_of assignee created changed "
    "revision low estimate high"
)

Name = Annotated[str, Query(max_length=200)]


def with_words(rows: Sequence[Values]) -> list[Values]:
    """Return rows of alerts with what people read of them."""
    return [{**row, "change": change_words(row), "result": result_words(row)} for row in rows]


@add_page(router, "", follows=True)
def show_alerts(
    view: Looking,
    show: Literal["open", "all"] = "open",
    series: Name = "",
    after: Name = "",
) -> Page:
    """Show the alerts, the newest first. after: the last id of the part before."""
    wanted = AlertFilter(series=series, open=True if show == "open" else None)
    found = view.operations.alerts(wanted, after=after, limit=ROWS_PER_PART + 1)
    rows, more = found["alerts"][:ROWS_PER_PART], len(found["alerts"]) > ROWS_PER_PART
    context = {
        "rows": with_words(rows),
        "count": found["count"],
        "next": rows[-1]["id"] if more else "",
        "asked": {"show": show, "series": series, "after": after},
    }
    return Page("alerts.html.j2", "Alerts", rows, _flat(rows), context, _COLUMNS)


def _flat(rows: Sequence[Values]) -> list[Values]:
    """Return the rows with the limits of the effect as columns."""
    return [
        {**{key: value for key, value in row.items() if key != "effect"}, **row["effect"]} for row in rows
    ]


@add_page(router, "/{id}", follows=True)
def show_alert(view: Looking, id: AlertId) -> Page:
    """Show one alert."""
    found = view.operations.alert(id)
    (row,) = with_words([found])
    low, high = (size_words(found, found["effect"][limit]) for limit in ("low", "high"))
    context = {
        "row": row,
        "interval": f"{low} .. {high}",
        "ends": end_names(found),
        "range": range_words(found),
        "culprits": culprit_lines(found),
        "states": [("", "as it is"), *_states()],
        "chart": _nights(view, found),
    }
    return Page("alert.html.j2", f"Alert {found['id']}", found, found["history"], context)


def _nights(view: View, alert: Values) -> str | None:
    """Return the nights of an alert's series with the alert marked; None where there are none any more."""
    try:
        series = show_series(view.wiring, alert["series"])
    except NotFound:
        return None
    measured = [night for night in series["nights"] if night["level"] is not None]
    return night_chart.render(measured, {alert["first_bad"]: alert}, night_chart.axis_of(series))


def _states() -> list[tuple[str, str]]:
    return [(state, state) for state in TRIAGES if state != "duplicate"]


@router.post("/{id}")
def set_alert(view: Changing, id: AlertId, fields: Fields) -> Response:
    """Say what an alert is, whose it is, or write a note; an empty field changes nothing."""
    values = {name: text for name, text in fields.items() if text}
    if fields.get("unassign"):
        if "assignee" in values:
            raise RequestError("a person and nobody exclude each other", cure="name one, or tick 'nobody'")
        values["assignee"] = ""
    made = alert_routes.set_alert(view.request, view.visitor.user, id, checked(NewAlertState, values))
    return back_to(view, fields, url("alerts", made["id"]))
