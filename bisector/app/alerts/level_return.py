"""Improvements that bring the level of a regression back: its alert notes that, then is fixed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from bisector.model.alerts import (
    BY_PROGRAM,
    MAX_NOTE_CHARACTERS,
    NOTE,
    Alert,
    AlertFilter,
    HistoryEntry,
    Triage,
    why_not,
)
from bisector.model.format import percent, places, signed
from bisector.model.printable import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.app.alerts.alert_context import AlertContext

LARGEST_REST = 0.5
"""Share of a regression that may be left once its level counts as back: chosen, at least half is undone."""
_NO_CHANGE: tuple[Triage, ...] = ("invalid", "infrastructure")
"""States that people give an alert if the kernel did not move the level."""


def look_for_return(context: AlertContext, improvement: Alert) -> None:
    """Note in the regressions of a series that an improvement brings their level back, or that it does not.

    May be called repeatedly: nothing is noted twice. Does nothing for a regression.
    """
    if improvement.direction != "improvement":
        return
    of_series = context.alerts.find(AlertFilter(series=improvement.series))
    for regression in of_series:
        if regression.direction == "regression" and regression.is_confirmed and regression.is_open:
            _tell(context, regression, improvement, changes_until(regression, improvement, of_series))


def changes_until(regression: Alert, improvement: Alert, of_series: Sequence[Alert]) -> list[Alert]:
    """Return the changes of a series from a regression to an improvement, both included, oldest first.

    One improvement cannot undo two regressions: to be back at the level of a regression's last good commit,
    it must make up for those that came in between as well. They count before fresh boots confirm them, too;
    another improvement counts once they have.
    """

    def counts(one: Alert) -> bool:
        if one.id in (regression.id, improvement.id):
            return True
        real = one.is_confirmed or (one.finding == "suspect" and one.direction == "regression")
        return (
            real
            and one.triage not in (*_NO_CHANGE, "duplicate")
            and (one.metric, one.unit) == (regression.metric, regression.unit)
            and regression.created <= one.created <= improvement.created
        )

    return sorted(filter(counts, of_series), key=lambda one: one.created)


def _tell(context: AlertContext, regression: Alert, improvement: Alert, changes: Sequence[Alert]) -> None:
    """Note it in one regression. If somebody changes that meanwhile, the next look does it."""
    since, name = improvement.first_bad, f"alert {improvement.id}"
    was_told = regression.back_since == since
    is_void = improvement.finding in ("rejected", "undecided") or improvement.triage in _NO_CHANGE
    if is_void or improvement.created < regression.created or not brings_back(regression, changes):
        if was_told:
            why = f"{name} is {improvement.state}" if is_void else _words(regression, changes)
            note = HistoryEntry(BY_PROGRAM, NOTE, _cut(f"the level is not known to be back: {why}"))
            context.alerts.change(replace(regression, back_since=""), [note])
        return
    # The level returned somewhere after the improvement's last good commit: this one is the last that can be.
    when = f"back since {since[:12]} at the latest"
    note = HistoryEntry(BY_PROGRAM, NOTE, f"level is {when} ({name}, {improvement.state})")
    if not improvement.is_confirmed:
        if not regression.back_since:  # two improvements would overwrite each other at every look
            context.alerts.change(replace(regression, back_since=since), [note])
        return
    told = f"fresh boots confirm that the level is {when} ({name})"
    older = told.replace(" at the latest", "")  # as versions before wrote it
    fixed = HistoryEntry(BY_PROGRAM, "fixed", _cut(f"{told}: {_words(regression, changes)}"))
    if why_not(regression, "fixed", "program") is None and not _has(
        context, regression, "fixed", told, older
    ):
        ended = replace(regression, triage="fixed", back_since=since)
        context.alerts.change(ended, [*([] if was_told else [note]), fixed])


def brings_back(regression: Alert, changes: Sequence[Alert]) -> bool:
    """Return whether all changes together leave so little of a loss that it is small and may be chance.

    changes: of the series, from the regression to the improvement.
    """
    if any((one.metric, one.unit) != (regression.metric, regression.unit) for one in changes):
        return False
    lost = regression.effect
    left = _rest(regression, changes) * math.copysign(1.0, lost.estimate)
    width = math.hypot(*(one.effect.high - one.effect.low for one in changes)) / 2
    return left <= width and left < LARGEST_REST * abs(lost.estimate)


def _rest(regression: Alert, changes: Sequence[Alert]) -> float:
    """Return by how much changes together move the level: relative ones multiply, those in a unit add up."""
    if regression.unit:
        return math.fsum(one.effect.estimate for one in changes)
    return math.prod(1.0 + one.effect.estimate for one in changes) - 1.0


def _words(regression: Alert, changes: Sequence[Alert]) -> str:
    """Return what was compared: each change since the last good commit, and what they leave."""
    digits = max((places(one.effect, 2) for one in changes), default=2)

    def value(number: float) -> str:
        return signed(number, regression.unit) if regression.unit else percent(number, digits)

    parts = ", ".join(
        f"{value(one.effect.estimate)} ({'this alert' if one.id == regression.id else f'alert {one.id}'})"
        for one in changes
    )
    rest = value(_rest(regression, changes))
    return f"since {regression.last_good[:12]} the series has {parts}: together {rest}"


def _cut(text: str) -> str:
    return cut(text, MAX_NOTE_CHARACTERS)


def _has(context: AlertContext, alert: Alert, what: str, *beginnings: str) -> bool:
    """Return whether an entry was written before; writing it again could undo what people decided since."""
    history = context.alerts.history(alert.id)
    return any(one.what == what and one.why.startswith(beginnings) for one in history)
