"""Suspects of nightly series, and whether fresh boots confirmed them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from bisector.app.alerts.alert_bisections import begin_or_wait, overlap
from bisector.app.alerts.level_return import look_for_return
from bisector.errors import InfrastructureError
from bisector.model.alerts import (
    BY_PROGRAM,
    MAX_NOTE_CHARACTERS,
    Alert,
    AlertFilter,
    HistoryEntry,
    alert_id,
)
from bisector.model.printable import cut

if TYPE_CHECKING:
    from bisector.app.alerts.alert_context import AlertContext
    from bisector.model.decisions import Interval

_ATTEMPTS = 20
"""Tries of a change while others change the same alert: chosen, more than a few workers and people need."""
_LATEST = 200
"""How many of a series' latest alerts a new one is compared with: chosen, older ones are of old releases."""


def suspect_found(context: AlertContext, found: Alert, why: str) -> Alert:
    """Keep a suspect of a series; return it, or the alert of the same change where there is one.

    found: its series, range, direction and effect, without an id; why: the nights that show it. A narrower
    range from later nights replaces the suspect's; an undecided alert becomes a suspect again. An alert that
    is returned as a 'suspect' still has to be confirmed.
    """
    identity = alert_id(found.series, found.last_good, found.first_bad, found.direction)
    why = cut(why, MAX_NOTE_CHARACTERS)
    new = replace(found, id=identity, finding="suspect", why=why, group=identity)

    def attempt() -> Alert | None:
        known = _same_change(context, new)
        if known is None:
            return context.alerts.add(new, HistoryEntry(BY_PROGRAM, "suspect", why))
        again = known.finding == "undecided" and known.triage is None
        same = (known.last_good, known.first_bad) == (new.last_good, new.first_bad)
        if not again and (same or known.finding != "suspect"):
            return known
        updated = replace(
            known,
            finding="suspect",
            last_good=new.last_good,
            first_bad=new.first_bad,
            metric=new.metric,  # people may have changed the workload's since
            effect=new.effect,
            unit=new.unit,
            why=why,
        )
        return context.alerts.change(updated, [HistoryEntry(BY_PROGRAM, "suspect", why)])

    kept = _until_written(attempt)
    look_for_return(context, kept)
    return kept


def confirmation_ended(
    context: AlertContext,
    identity: str,
    outcome: Literal["confirmed", "rejected", "undecided"],
    effect: Interval | None,
    tip: str,
    why: str,
) -> Alert:
    """Write down what fresh boots say of a suspect; a confirmed regression begins its bisection with that.

    effect: of the fresh boots, None where there are too few; tip: the commit that was compared with the last
    good one. An alert that is no longer a suspect stays as it is: this was called before.
    """
    why = cut(why, MAX_NOTE_CHARACTERS)

    def attempt() -> Alert | None:
        alert = context.alerts.load(identity)
        if alert.finding != "suspect":
            return alert
        told = replace(alert, finding=outcome, effect=effect or alert.effect, tip=tip, why=why)
        entries = [HistoryEntry(BY_PROGRAM, outcome, why)]
        if outcome == "confirmed" and told.is_open:
            return begin_or_wait(context, told, entries)
        return context.alerts.change(told, entries)

    kept = _until_written(attempt)
    look_for_return(context, kept)
    return kept


def confirmation_lost(context: AlertContext, series: str, why: str) -> None:
    """Record that the suspects of a series will not be confirmed any more; a later night may."""
    for alert in context.alerts.find(AlertFilter(series=series, findings=("suspect",))):
        confirmation_ended(context, alert.id, "undecided", None, alert.tip, why)


def _same_change(context: AlertContext, new: Alert) -> Alert | None:
    """Return the alert of a series that is about the same change, the newest of several."""
    latest = context.alerts.find(AlertFilter(series=new.series), limit=_LATEST)
    for one in latest:
        if one.id == new.id:
            return one
        alike = (one.direction, one.repo) == (new.direction, new.repo) and one.finding != "rejected"
        if alike and overlap(context, one, new):
            return one
    return None


def _until_written(attempt: Callable[[], Alert | None]) -> Alert:
    """Repeat a change until it is written, each time on top of what others wrote first."""
    for _ in range(_ATTEMPTS):
        if (kept := attempt()) is not None:
            return kept
    raise InfrastructureError(
        "an alert is changed by others again and again",
        cure="it is tried again by itself; 'perfbisect alert list' shows it",
    )
