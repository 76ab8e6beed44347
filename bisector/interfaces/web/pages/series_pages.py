"""Nightly series: what each measures, its nights with their levels, where alerts lie, and their forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import Response

from bisector.app.operations.operations import Values
from bisector.app.series.show_series import list_series, show_series
from bisector.interfaces.web.api import series_routes
from bisector.interfaces.web.api.bisection_routes import Why
from bisector.interfaces.web.authority import require_role
from bisector.interfaces.web.pages.alert_pages import with_words
from bisector.interfaces.web.pages.listed_choices import choices_of, filled_fields
from bisector.interfaces.web.pages.page_view import (
    Changing,
    Fields,
    Looking,
    Page,
    add_page,
    back_to,
    checked,
    url,
)
from bisector.model.alerts import AlertFilter
from bisector.model.format import two_figures
from bisector.report.html import night_chart, page_assets
from bisector.report.row_words.night_words import night_words
from bisector.schemas.series_request import RemoteSeries

router = APIRouter(prefix="/series", include_in_schema=False)

_SHOWN = 60
"""Nights of the table; the drawing and the data have all."""
_ALERTS_SHOWN = 20
"""Alerts of the table, the newest; the page of alerts has all, part by part."""
_COLUMNS = (
    "name repo branch workload recipe testbed cron time_zone budget boots reference threshold state "
    "why created_by created nights last last_state verdict hours_used hours_allowed next metric unit "
    "effect_unit"
)
_NIGHT_COLUMNS = (
    "number scheduled place kind state commit bisection why note confirmation confirmed new_level "
    "level reference_level boots"
)

Name = Annotated[str, Path(max_length=200, pattern=r"^[^\x00-\x1f]+$")]


@add_page(router, "", follows=True)
def show_all_series(view: Looking) -> Page:
    """Show all series."""
    rows = list_series(view.wiring)
    context = {"rows": rows, "choices": choices_of(view)}
    return Page("series_list.html.j2", "Series", rows, rows, context, _COLUMNS)


@add_page(router, "/{name}", follows=True)
def show_one_series(view: Looking, name: Name) -> Page:
    """Show one series: its nights in the order of history, and its alerts."""
    found = show_series(view.wiring, name)
    alerts = view.operations.alerts(AlertFilter(series=name), after="", limit=None)["alerts"]
    nights = found["nights"]
    measured = [night for night in nights if night["level"] is not None]
    axis = night_chart.axis_of(found)
    marks = {alert["first_bad"]: alert for alert in alerts}
    return Page(
        "series.html.j2",
        name,
        {**found, "alerts": alerts},
        night_rows(nights),
        {
            "series": found,
            "alerts": with_words(alerts[:_ALERTS_SHOWN]),
            "more_alerts": len(alerts) - _ALERTS_SHOWN,
            "chart": night_chart.render(measured, marks, axis),
            "data": page_assets.json_block(night_chart.data(measured, marks, axis)) if measured else None,
            "nights": [
                {**night, "said": night_words(night, found["effect_unit"])}
                for night in nights[: -_SHOWN - 1 : -1]
            ],
            "can_backfill": bool(measured),
            "verdict": _words(found, nights),
        },
        _NIGHT_COLUMNS,
    )


@router.post("")
def add(view: Changing, fields: Fields) -> Response:
    """Add a series, and lead to its page."""
    asked = checked(RemoteSeries, filled_fields(fields))
    series_routes.add_series(view.request, view.visitor.user, asked)
    return back_to(view, {}, url("series", asked.name))


@router.post("/{name}/nights")
def run_night(view: Changing, name: Name, fields: Fields) -> Response:
    """Make a night due now."""
    series_routes.run_night(view.request, view.visitor.user, name)
    return back_to(view, fields, url("series", name))


@router.post("/{name}/backfill")
def backfill(view: Changing, name: Name, fields: Fields) -> Response:
    """Have older commits measured."""
    wanted = checked(series_routes.Backfill, filled_fields(fields))
    series_routes.backfill(view.request, view.visitor.user, name, wanted)
    return back_to(view, fields, url("series", name))


@router.post("/{name}/pause")
def pause(view: Changing, name: Name, fields: Fields) -> Response:
    """Let a series rest."""
    series_routes.pause_series(view.request, view.visitor.user, name, checked(Why, fields))
    return back_to(view, fields, url("series", name))


@router.post("/{name}/resume")
def resume(view: Changing, name: Name, fields: Fields) -> Response:
    """Let a series go on."""
    series_routes.resume_series(view.request, view.visitor.user, name)
    return back_to(view, fields, url("series", name))


@router.post("/{name}/removal")
def remove(view: Changing, name: Name) -> Response:
    """Forget a series. For administrators."""
    require_role(view.visitor.user, "admin")
    series_routes.remove_series(view.request, view.visitor.user, name)
    return back_to(view, {}, url("series"))


def night_rows(nights: Sequence[Mapping[str, Any]]) -> list[Values]:
    """Return a row for each night, without the values of its boots."""
    left_out = ("boots", "verdict")
    return [
        {**{key: value for key, value in night.items() if key not in left_out}, "boots": len(night["boots"])}
        for night in nights
    ]


def _words(series: Mapping[str, Any], nights: Sequence[Mapping[str, Any]]) -> str:
    """Return what the series shows now, in one sentence."""
    judged = [night["verdict"] for night in nights if night["verdict"]]
    if not judged:
        return "Nothing is known of its level yet."
    last = judged[-1]
    words: Mapping[str, str] = {
        "unmeasured": "The last night has measured nothing.",
        "learning": "Too few nights to know how much one scatters.",
        "steady": "Its level is steady.",
        "suspect": "Its level seems to have moved.",
        "testbed suspect": "The reference kernel has moved, too: the testbed is suspect.",
    }
    noise, unit = last["night_sd"], series["effect_unit"]
    if not noise:
        return words.get(last["status"], "")
    if last["status"] == "learning":  # with a scatter that earlier nights have shown
        words = {"learning": "Too few nights since its level moved or the series began to judge the latest."}
    scatter = f"{noise:.2g} {unit}" if unit else two_figures(noise)
    return f"{words.get(last['status'], '')} A night scatters by {scatter}."
