"""After a night: its points, the verdict of its series, and the confirmation of a suspect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from bisector.app.series.accept_night import confirmation_bisection, store_once
from bisector.app.series.levels import effect_unit, verdicts
from bisector.app.series.series_store import series_store
from bisector.errors import NotFound
from bisector.model.alerts import Alert
from bisector.model.decisions import Ending, Interval
from bisector.model.format import change
from bisector.model.machines.firmware import firmware_difference
from bisector.model.records import Booted
from bisector.model.series import Confirmed, Night, NightVerdict, Point, Series
from bisector.model.state import fold
from bisector.model.stored_bisection import REMOVING, Stored
from bisector.schemas.request import read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.goal import Metric
    from bisector.schemas.request import Accepted

_FIRMWARE_NIGHTS = 30
"""How many nights back to look for firmware and processor: each whose bisection is gone costs a query."""
_OUTCOMES: dict[Ending, Confirmed] = {
    Ending.CONFIRMED: "confirmed",
    Ending.REJECTED: "rejected",
}


class AlertSink(Protocol):
    """Who learns of suspects and of what became of them: `app.alerts.suspects`."""

    def suspect_found(self, found: Alert, why: str) -> Alert:
        """Keep a suspect; what is returned as 'suspect' is to be confirmed."""
        ...

    def confirmation_ended(
        self, identity: str, outcome: Confirmed, effect: Interval | None, tip: str, why: str
    ) -> object:
        """Write down what fresh boots say of a suspect. May be called twice."""
        ...

    def confirmation_lost(self, series: str, why: str) -> object:
        """Record that the suspects of a series will not be confirmed any more. May be called twice."""
        ...


def collect(wiring: Wiring, night: Night) -> Night | None:
    """Store the points of a night whose bisection has ended, or why there are none.

    Return the night if it is measured now, and was not before.
    """
    store = series_store(wiring)
    stored, why = _ended(wiring, night.bisection)
    if stored is None or stored.conclusion is None:
        if why:
            store.end_night(replace(night, state="failed", why=why), ())
        return None
    accepted = read_accepted(stored.request)
    records = [record for _, record in wiring.store.records(stored.id)]
    state = fold(stored.graph, accepted.the_goal(), records)
    points = [
        Point(
            night.number,
            visit.boot,
            stored.graph.shas[visit.commit],
            visit.testbed,
            visit.commit == stored.graph.good,
            tuple(value for _, value in visit.samples),
            visit.at[0],
        )
        for visit in state.visits
        if visit.samples
    ]
    if stored.conclusion.ending is Ending.MEASURED:
        note = " ".join(filter(None, (night.note, *stored.conclusion.warnings)))
        measured = replace(night, state="measured", note=note)
        return measured if store.end_night(measured, points) else None
    store.end_night(replace(night, state="failed", why=stored.conclusion.summary), points)
    return None


def judge(wiring: Wiring, series: Series, night: Night, alerts: AlertSink) -> None:
    """Write down what the series shows after a night, and begin the confirmation of a suspect."""
    store = series_store(wiring)
    nights = store.nights(series.name)
    try:
        accepted = read_accepted(wiring.store.load(night.bisection).request)
    except NotFound:  # people removed its bisection just now; the next night is judged
        store.set_verdict(replace(night, verdict=NightVerdict("unmeasured")))
        return
    metric = accepted.the_goal().metric
    changed = [_firmware_change(wiring, nights, night), _processor_change(wiring, nights, night, accepted)]
    if any(changed):
        text = f"{' and '.join(filter(None, changed))}: not compared with earlier nights"
        if text not in night.note:  # the note is there if a process was killed after writing it
            night = replace(night, note="; ".join(filter(None, (night.note, text))))
        store.set_verdict(night, night.number)
        nights = store.nights(series.name)
    found = verdicts(nights, store.points(series.name), metric)
    if night.number not in found:  # people have discarded what it measured of the tip
        store.set_verdict(replace(night, verdict=NightVerdict("unmeasured")))
        return
    measured = [one for one in nights if one.number in found]
    newest = measured[-1]
    confirming = any(one.confirmation and one.confirmed is None for one in nights)
    verdict = found[newest.number]
    begins = None
    if verdict.status == "suspect" and not confirming and not newest.confirmation:
        commits = {one.number: one.commit for one in measured}
        if commits[_number(verdict.last_good)] in (commits[_number(verdict.first_bad)], newest.commit):
            verdict = replace(verdict, status="testbed suspect")  # the same kernel at another level
        else:
            suspect = replace(newest, verdict=verdict)
            newest = _begin_confirmation(wiring, series, suspect, metric, commits, alerts)
    is_the_testbeds = verdict.status == "testbed suspect" and newest.number == night.number
    if is_the_testbeds and _suspect_testbed(wiring, series, night, verdict, metric):
        begins = verdict.first_bad  # a new level, or the testbed would be suspect again after each release
    if newest.number == night.number:
        if not newest.confirmation:
            store.set_verdict(replace(newest, verdict=verdict), begins)
    else:
        store.set_verdict(replace(night, verdict=found[night.number]))


def _begin_confirmation(
    wiring: Wiring,
    series: Series,
    night: Night,
    metric: Metric,
    commits: dict[int, str],
    alerts: AlertSink,
) -> Night:
    """Report a suspect, and queue its confirmation where it needs one; return the night as it is then."""
    verdict = night.verdict
    assert verdict is not None and verdict.effect is not None, "it is suspect"
    worse = verdict.effect.estimate * metric.worse_sign > 0
    last_good, first_bad = commits[_number(verdict.last_good)], commits[_number(verdict.first_bad)]
    alert = Alert(
        id="",
        series=series.name,
        workload=series.workload,
        metric=metric.name,
        testbed=series.testbed,
        repo=series.repo,
        last_good=last_good,
        first_bad=first_bad,
        direction="regression" if worse else "improvement",
        effect=verdict.effect,
        unit=effect_unit(metric),
        tip=night.commit,
    )
    kept = alerts.suspect_found(alert, words_of(verdict, night, alert.unit))
    if kept.finding != "suspect" or not kept.is_open:  # it is known, or people have closed it
        return night
    stored = confirmation_bisection(
        wiring, series, night.number, last_good, night.commit, improved=not worse, alert=kept.id
    )
    store_once(wiring, stored)
    begun = replace(night, confirmation=stored.id)
    series_store(wiring).begin_confirmation(begun)
    return begun


def words_of(verdict: NightVerdict, night: Night, unit: str) -> str:
    """Return what a suspect night shows, for people. unit: of its changes, '' where they are relative."""
    assert verdict.effect is not None, "it has a change"
    text = (
        f"night {night.number}: the level moved by {change(verdict.effect, unit)} between the nights "
        f"{verdict.last_good} and {verdict.first_bad}"
    )
    if verdict.reference is not None:
        text += f"; the reference by {change(verdict.reference, unit)}"
    return text


def _suspect_testbed(
    wiring: Wiring, series: Series, night: Night, verdict: NightVerdict, metric: Metric
) -> bool:
    """Take a testbed out of use whose reference kernel moved, too; a person looks and releases it.

    Return whether it is suspect now, by us or by others: not while people have it in another state.
    """
    states = {status.name: status.state for status in wiring.coordinator.testbeds()}
    state = states.get(series.testbed, "good")
    if state == "good":
        what = words_of(verdict, night, effect_unit(metric))
        reason = f"series '{series.name}', {what}: no new kernel explains it"
        wiring.coordinator.set_testbed(series.testbed, "suspect", reason, f"series {series.name}")
    return state in ("good", "suspect")


def end_confirmation(wiring: Wiring, night: Night, alerts: AlertSink) -> None:
    """Write down the end of a night's confirmation, if it has ended.

    A new level begins only if the confirmation has compared the two levels: after one that was cancelled,
    failed or ran out of budget, a later night becomes suspect again.
    """
    stored, why = _ended(wiring, night.confirmation)
    conclusion = stored.conclusion if stored is not None else None
    if conclusion is None and not why:
        return
    outcome: Confirmed = "undecided"
    if conclusion is not None:
        outcome, why = _OUTCOMES.get(conclusion.ending, "undecided"), conclusion.summary
    spec = read_accepted(stored.request).night if stored is not None else None
    if spec is not None and spec.alert:
        # A conclusion's change is relative; in another unit the alert keeps what the nights showed.
        relative = stored is not None and _metric_of(stored).threshold.relative
        effect = conclusion.total if conclusion is not None and relative else None
        alerts.confirmation_ended(spec.alert, outcome, effect, night.commit, why)
    elif stored is None:  # removed, with the alert's id; but a series has one confirmation at a time
        alerts.confirmation_lost(night.series, why)
    begins = None
    if conclusion is not None and conclusion.total is not None:  # its boots were compared to the end
        begins = night.verdict.first_bad if night.verdict is not None else night.number
    series_store(wiring).end_confirmation(replace(night, confirmed=outcome), begins)


def _firmware_change(wiring: Wiring, nights: Sequence[Night], night: Night) -> str:
    """Return what changed about the testbed since the last night with known firmware; '' for nothing.

    That need not be the night before, whose bisection may have been removed or pruned.
    """
    for one in _nights_before(nights, night):
        if before := list(_boot_facts(wiring, one)):
            found = firmware_difference(before, next(_boot_facts(wiring, night), {}), one_testbed=True)
            return f"{found.subject('the testbed')} changed ({found})" if found is not None else ""
    return ""


def _processor_change(wiring: Wiring, nights: Sequence[Night], night: Night, accepted: Accepted) -> str:
    """Return what changed of the modelled processor, in words; '' where nothing did, or no model decides."""
    now = accepted.cpu
    if now is None or not accepted.the_goal().modelled:
        return ""
    for one in _nights_before(nights, night):
        with contextlib.suppress(NotFound):
            before = read_accepted(wiring.store.load(one.bisection).request).cpu
            if before is None or before == now:
                return ""
            names = "its row" if before.name == now.name else f"{before.name} -> {now.name}"
            return f"the modelled processor changed ({names})"
    return ""


def _nights_before(nights: Sequence[Night], night: Night) -> list[Night]:
    """Return the measured nights before one, latest first, at most `_FIRMWARE_NIGHTS`."""
    earlier = sorted((n for n in nights if n.state == "measured" and n.place < night.place), key=_place)
    return earlier[: -_FIRMWARE_NIGHTS - 1 : -1]


def _place(night: Night) -> float:
    return night.place


def _boot_facts(wiring: Wiring, night: Night) -> Iterator[Mapping[str, str]]:
    """Yield the facts of a night's boots, none where its bisection is gone."""
    with contextlib.suppress(NotFound):
        for _, record in wiring.store.records(night.bisection):
            if isinstance(record, Booted) and record.ok:
                yield record.facts


def _metric_of(stored: Stored) -> Metric:
    """Return the deciding metric of a bisection."""
    return read_accepted(stored.request).the_goal().metric


def _ended(wiring: Wiring, bisection: str) -> tuple[Stored | None, str]:
    """Return a bisection, and why it has ended without a conclusion: '' while it goes on, or has one."""
    try:
        status = wiring.store.status(bisection)
        if status in ("queued", "running"):  # the usual answer, without loading all of it
            return None, ""
        stored = wiring.store.load(bisection)
    except NotFound:
        return None, f"its bisection '{bisection}' was removed"
    if stored.conclusion is not None or status == "paused":
        return stored, ""
    if status == REMOVING:
        return stored, f"its bisection '{bisection}' is being removed"
    if status == "cancelled":
        by = f" by {stored.action.by}: {stored.action.why}" if stored.action is not None else ""
        return stored, f"its bisection was cancelled{by}".rstrip(": ")
    if status == "interrupted":
        return stored, ""
    return stored, f"its bisection '{bisection}' failed: see 'perfbisect status {bisection}'"


def _number(night: int | None) -> int:
    assert night is not None, "a change has a place"
    return night
