"""Improvements that bring the level of a regression back: its alert is told so, then fixed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from bisector.model.alerts import BY_PROGRAM, NOTE, Alert, AlertFilter, Entry, why_not

if TYPE_CHECKING:
    from bisector.app.alerts.alert_context import AlertContext

LARGEST_REST = 0.5
"""Of a regression: with more of it left, the level is not back."""


def look_for_return(context: AlertContext, improvement: Alert) -> None:
    """Tell the regressions of a series that an improvement brings their level back, or that it does not.

    May be called again and again: what was told is not told again. Does nothing for a regression.
    """
    if improvement.direction != "improvement":
        return
    wanted = AlertFilter(series=improvement.series, open=True)
    for regression in context.alerts.find(wanted):
        if regression.direction == "regression" and regression.is_confirmed:
            _tell(context, regression, improvement)


def _tell(context: AlertContext, regression: Alert, improvement: Alert) -> None:
    """Tell one regression. Where somebody changes it just then, the next look does it."""
    since, name = improvement.first_bad, f"alert {improvement.id}"
    was_told = regression.back_since == since
    if improvement.finding in ("rejected", "undecided") or improvement.triage in (
        "invalid",
        "infrastructure",
    ):
        if was_told:
            note = Entry(
                BY_PROGRAM, NOTE, f"the level is not known to be back: {name} is {improvement.state}"
            )
            context.alerts.change(replace(regression, back_since=""), [note])
        return
    if improvement.created < regression.created or not brings_back(regression, improvement):
        return
    note = Entry(BY_PROGRAM, NOTE, f"level is back since {since[:12]} ({name}, {improvement.state})")
    if not improvement.is_confirmed:
        if not was_told:
            context.alerts.change(replace(regression, back_since=since), [note])
        return
    fixed = Entry(
        BY_PROGRAM, "fixed", f"fresh boots confirm that the level is back since {since[:12]} ({name})"
    )
    if why_not(regression, "fixed", "program") is None and not _has(context, regression, fixed):
        told = replace(regression, triage="fixed", back_since=since)
        context.alerts.change(told, [*([] if was_told else [note]), fixed])


def brings_back(regression: Alert, improvement: Alert) -> bool:
    """Return whether what both changes together leave of a loss may be chance, and is small."""
    if regression.unit != improvement.unit:
        return False
    lost, gained = regression.effect, improvement.effect
    rest = lost.estimate + gained.estimate
    if not regression.unit:
        rest += lost.estimate * gained.estimate
    left = rest * math.copysign(1.0, lost.estimate)
    width = math.hypot(lost.high - lost.low, gained.high - gained.low) / 2
    return left <= width and left < LARGEST_REST * abs(lost.estimate)


def _has(context: AlertContext, alert: Alert, entry: Entry) -> bool:
    """Return whether an entry was written before: people may have decided otherwise since."""
    return any((one.what, one.why) == (entry.what, entry.why) for one in context.alerts.history(alert.id))
