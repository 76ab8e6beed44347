"""Series as JSON values for lists and pages: `perfbisect series list|show --json`."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bisector.app.series.levels import effect_unit, level_of
from bisector.app.series.night_times import times_after
from bisector.app.series.series_store import series_store
from bisector.engine.availability import why_not
from bisector.errors import PerfbisectError, RequestError
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import Night, Point, Series, owner_of
from bisector.schemas.request import read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

Values = dict[str, Any]
_LOOKED_AT = 3
"""Nights that are asked for their metric: each that was removed costs a statement."""


def series_row(wiring: Wiring, series: Series, nights: Sequence[Night]) -> Values:
    """Return a series as `list` shows it."""
    now = wiring.coordinator.now()
    last = nights[-1] if nights else None
    judged = [night for night in nights if night.verdict is not None]
    used = sum(wiring.coordinator.machine_time(owner_of(series.name)).values()) / HOUR_SECONDS
    return {
        **asdict(series),
        "nights": len(nights),
        "last": None if last is None else last.number,
        "last_state": None if last is None else last.state,
        "verdict": judged[-1].verdict.status if judged and judged[-1].verdict is not None else None,
        "hours_used": used,
        "hours_allowed": wiring.settings.hours_allowed(owner_of(series.name), series.budget),
        "next": _next_night(series, now),
        **_metric(wiring, nights),
    }


def _next_night(series: Series, now: float) -> float | None:
    """Return when a night is due next; None while it is paused, or where this host lacks its time zone."""
    if series.state != "active":
        return None
    try:
        return next(times_after(series.cron, series.time_zone, now))
    except RequestError:
        return None


def _metric(wiring: Wiring, nights: Sequence[Night]) -> Values:
    """Return what the numbers of a series are, by the last of its nights that says so."""
    for night in [night for night in nights[::-1] if night.bisection][:_LOOKED_AT]:
        try:
            metric = read_accepted(wiring.store.load(night.bisection).request).the_goal().metric
        except PerfbisectError:  # it was removed, or cannot be read
            continue
        return {"metric": metric.name, "unit": metric.unit, "effect_unit": effect_unit(metric)}
    return {"metric": None, "unit": None, "effect_unit": ""}


def list_series(wiring: Wiring) -> list[Values]:
    """Return all series."""
    store = series_store(wiring)
    return [series_row(wiring, series, store.nights(series.name)) for series in store.all()]


def show_series(wiring: Wiring, name: str) -> Values:
    """Return a series with its nights in the order of history, and their levels. Raises NotFound."""
    store = series_store(wiring)
    series = store.load(name)
    nights = store.nights(name)
    points: dict[int, list[Point]] = defaultdict(list)
    for point in store.points(name):
        points[point.night].append(point)
    out_of_use = why_not(wiring.coordinator, owner_of(name)).get(series.testbed)
    return {
        **series_row(wiring, series, nights),
        "testbed_out_of_use": out_of_use,
        "nights": [_night_row(night, points[night.number]) for night in nights],
    }


def _night_row(night: Night, points: Sequence[Point]) -> Values:
    """Return a night. level, reference_level: medians of its boots, None where there are none."""
    row = asdict(night)
    del row["series"]
    tip, reference = ([level_of(p) for p in points if p.reference == which] for which in (False, True))
    return {
        **row,
        "level": statistics.median(tip) if tip else None,
        "reference_level": statistics.median(reference) if reference else None,
        "boots": [
            {
                "boot": p.boot,
                "reference": p.reference,
                "testbed": p.testbed,
                "at": p.at,
                "values": list(p.values),
            }
            for p in points
        ],
    }
