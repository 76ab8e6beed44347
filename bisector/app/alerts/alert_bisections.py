"""The bisection of a confirmed alert: begun once for all that share its cause, within the series' budget.

Each function reads an alert, and writes it with what follows in one transaction, which fails where somebody
has changed it meanwhile: a worker that is killed in between leaves nothing half done, and of two workers one
comes too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bisector.app.accept import find_unfinished
from bisector.errors import Interrupted, NotFound, PerfbisectError
from bisector.model.alerts import (
    BY_PROGRAM,
    CONFIRMED,
    MAX_NOTE_CHARACTERS,
    Alert,
    AlertFilter,
    Finding,
    HistoryEntry,
)
from bisector.model.decisions import FOUND
from bisector.model.machine_hours import HOUR_SECONDS, wait_until
from bisector.model.printable import cut
from bisector.model.series import owner_of, series_of
from bisector.model.stored_bisection import ENDED, MAX_CULPRITS, PRIORITIES, REMOVING, Stored
from bisector.utc_time import minute

if TYPE_CHECKING:
    from bisector.app.alerts.alert_context import AlertContext
    from bisector.model.series import Series

_CANNOT = "cannot be bisected: "
_SHARING: tuple[Finding, ...] = ("bisecting", "culprit")
"""Findings of alerts that have what others can share."""
_FAILED = "its bisection has failed: 'perfbisect resume"


def begin_or_wait(
    context: AlertContext,
    alert: Alert,
    entries: Sequence[HistoryEntry] = (),
    among: Sequence[Alert] | None = None,
) -> Alert | None:
    """Write a confirmed regression with its bisection, or with what it waits for; None: it was changed.

    entries: its history that is not written yet. among: all open alerts of the workload, newest first, if the
    caller has them. Where its range overlaps that of another open alert of the same workload, it joins that
    alert's group and shares its bisection or culprit.
    """
    if among is None:
        among = context.alerts.find(AlertFilter(workload=alert.workload, open=True))
    others = [one for one in among if one.id != alert.id and one.repo == alert.repo]
    # An alert that waits joined its group when it was confirmed: only alerts with something to share matter.
    matters = CONFIRMED if entries else _SHARING
    related = [one for one in others[::-1] if one.finding in matters and overlap(context, one, alert)]
    group = related[0].group if related else alert.group
    if group != alert.group:
        entries = [*entries, HistoryEntry(BY_PROGRAM, f"joined the group of {group}", "their ranges overlap")]
    known = replace(alert, group=group)
    for other in related:
        if other.finding == "bisecting":
            status = _status(context, other.bisection)
            if status not in ENDED:
                why = f"its range overlaps that of alert {other.id}, whose bisection goes on"
                shared = replace(known, finding="bisecting", bisection=other.bisection, why=why)
                return _write(context, shared, entries, others)
            if status != REMOVING:
                why = f"waits: what the bisection of alert {other.id} has found is told first"
                return wait(context, known, entries, why)
        elif other.finding == "culprit" and (mine := _in_range(context, alert, other.culprits)):
            why = f"the culprit of alert {other.id} is in its range"
            shared = replace(known, bisection=other.bisection)
            return _write(context, _with_culprits(context, shared, mine, why), entries, others)
    return _begin(context, known, entries, others)


def _begin(
    context: AlertContext, alert: Alert, entries: Sequence[HistoryEntry], others: Sequence[Alert]
) -> Alert | None:
    """Write an alert with a bisection of its own, or with what that waits for."""
    try:
        series = context.series(alert.series)
        if waits := _why_not_now(context, series):
            return wait(context, alert, entries, waits)
        accepted, graph = context.accept(alert, series)
    except Interrupted:
        raise
    except PerfbisectError as error:
        return wait(context, alert, entries, f"{_CANNOT}{error.message}")
    name, status = find_unfinished(context.store, accepted)
    stored = Stored(
        id=name,
        created=context.now(),
        request=accepted.model_dump_json(),
        status="queued",
        graph=graph,
        priority=PRIORITIES["low"],
        owner=owner_of(alert.series),
    )
    why = f"bisection {name}{f', which is {status}' if status else ''}"
    begun = replace(alert, finding="bisecting", bisection=name, why=why)
    return _write(context, begun, entries, others, begin=None if status else stored)


def why_nothing_begins(context: AlertContext, series: str) -> str:
    """Return why no bisection of a series, by its name, may begin now; '' where one may."""
    try:
        return _why_not_now(context, context.series(series))
    except NotFound as error:
        return f"{_CANNOT}{error.message}"


def _why_not_now(context: AlertContext, series: Series) -> str:
    if series.state == "paused":
        return f"waits: the series is paused; 'perfbisect series resume {series.name}' lets it go on"
    owner, hours = owner_of(series.name), context.hours(series)
    until = wait_until(
        context.coordinator.machine_time(owner), hours * HOUR_SECONDS, context.coordinator.now()
    )
    if until is None:
        return ""
    return f"waits: the series has had its {hours:g} machine hours of seven days; not before {minute(until)}"


def wait(context: AlertContext, alert: Alert, entries: Sequence[HistoryEntry], why: str) -> Alert | None:
    """Write what an alert waits for, where that is news; return it in any case."""
    why = cut(why, MAX_NOTE_CHARACTERS)
    if not entries and alert.why.partition(";")[0] == why.partition(";")[0]:
        return alert
    waiting = HistoryEntry(BY_PROGRAM, "waiting", why)
    return context.alerts.change(replace(alert, why=why), [*entries, waiting])


def end_of_bisection(context: AlertContext, alert: Alert) -> Alert | None:
    """Write how an alert's bisection has ended; None where it goes on, or the alert was changed."""
    status = _status(context, alert.bisection)
    if status not in ENDED:
        return _tell_failure(context, alert, status)
    stored = None if status == REMOVING else context.store.load(alert.bisection)
    shared = stored is not None and _is_of_another_series(stored, alert)
    if stored is None or stored.conclusion is None:
        why = _why_ended(stored)
    else:
        why = cut(stored.conclusion.summary, MAX_NOTE_CHARACTERS)
        shas = [stored.graph.shas[i] for found in stored.conclusion.culprits for i in found.commits]
        mine = _in_range(context, alert, shas) if shared else shas
        if mine and stored.conclusion.ending in FOUND:
            return _write(context, _with_culprits(context, alert, mine, why))
    if shared:
        why = f"bisection {alert.bisection}, of another alert, has not found its culprit"
        return _write(context, replace(alert, finding="confirmed", why=why))
    return _write(context, replace(alert, finding="not found", why=why))


def _why_ended(stored: Stored | None) -> str:
    """Return why a bisection has ended without a conclusion."""
    if stored is None or stored.action is None:
        return f"its bisection was {'removed' if stored is None else stored.status}"
    action = stored.action
    why = f"its bisection was {stored.status} by {action.by}{': ' if action.why else ''}{action.why}"
    return cut(why, MAX_NOTE_CHARACTERS)


def _tell_failure(context: AlertContext, alert: Alert, status: str) -> Alert | None:
    """Write down that a bisection has failed, or no longer rests for that."""
    has_failed, was_told = status == "failed", alert.why.startswith(_FAILED)
    if has_failed == was_told:
        return None
    why = f"{_FAILED} {alert.bisection}' goes on" if has_failed else f"bisection {alert.bisection} goes on"
    return context.alerts.change(replace(alert, why=why), [HistoryEntry(BY_PROGRAM, "bisecting", why)])


def overlap(context: AlertContext, one: Alert, other: Alert) -> bool:
    """Return whether a commit is in the ranges of both alerts, which are of one repository."""
    if (one.last_good, one.first_bad) == (other.last_good, other.first_bad):
        return True
    ranges = [context.commits(alert.repo, alert.last_good, alert.first_bad) for alert in (one, other)]
    return not ranges[0].isdisjoint(ranges[1])


def _in_range(context: AlertContext, alert: Alert, shas: Sequence[str]) -> list[str]:
    """Return those of some commits that an alert may be about."""
    range_ = context.commits(alert.repo, alert.last_good, alert.tip or alert.first_bad)
    return [sha for sha in shas if sha in range_]


def _with_culprits(context: AlertContext, alert: Alert, shas: Sequence[str], why: str) -> Alert:
    """Return an alert whose culprits are found."""
    subject = context.subject(alert.repo, shas[0])
    return replace(alert, finding="culprit", culprits=tuple(shas[:MAX_CULPRITS]), subject=subject, why=why)


def _status(context: AlertContext, bisection: str) -> str:
    """Return the status of a bisection, REMOVING where there is none."""
    try:
        return context.store.status(bisection)
    except NotFound:
        return REMOVING


def _is_of_another_series(stored: Stored, alert: Alert) -> bool:
    return series_of(stored.owner) not in ("", alert.series)


def _write(
    context: AlertContext,
    alert: Alert,
    entries: Sequence[HistoryEntry] = (),
    seen: Sequence[Alert] = (),
    begin: Stored | None = None,
) -> Alert | None:
    """Write an alert with its new finding; None: it, or one of `seen`, was changed."""
    found = HistoryEntry(BY_PROGRAM, alert.finding, alert.why)
    return context.alerts.change(alert, [*entries, found], begin=begin, seen=seen)
