"""Nightly series: what each measures, its nights with their levels, and where alerts lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path

from bisector.app.operations.operations import Values
from bisector.app.series.show_series import list_series, show_series
from bisector.interfaces.web.pages.alert_pages import with_words
from bisector.interfaces.web.pages.page_view import Looking, Page, add_page
from bisector.model.alerts import AlertFilter
from bisector.report.html import night_chart, page_assets

router = APIRouter(prefix="/series", include_in_schema=False)

_SHOWN = 60
"""Nights of the table; the drawing and the data have all."""

Name = Annotated[str, Path(max_length=200, pattern=r"^[^\x00-\x1f]+$")]


@add_page(router, "")
def show_all_series(view: Looking) -> Page:
    """Show all series."""
    rows = list_series(view.wiring)
    return Page("series_list.html.j2", "Series", rows, rows, {"rows": rows})


@add_page(router, "/{name}")
def show_one_series(view: Looking, name: Name) -> Page:
    """Show one series: its nights in the order of history, and its alerts."""
    found = show_series(view.wiring, name)
    alerts = view.operations.alerts(AlertFilter(series=name), after="", limit=None)["alerts"]
    nights = found["nights"]
    measured = [night for night in nights if night["level"] is not None]
    marks = {alert["first_bad"]: alert for alert in alerts}
    return Page(
        "series.html.j2",
        name,
        {**found, "alerts": alerts},
        night_rows(nights),
        {
            "series": found,
            "alerts": with_words(alerts),
            "chart": night_chart.render(measured, marks),
            "data": page_assets.json_block(night_chart.data(measured, marks)) if measured else None,
            "nights": nights[: -_SHOWN - 1 : -1],
            "verdict": _words(found, nights),
        },
    )


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
    noise = last["night_sd"]
    relative = "%" in (series["threshold"] or "%")
    scatter = f" A night scatters by {100 * noise:.2g}%." if noise and relative else ""
    return words.get(last["status"], "") + scatter
