"""Alerts are followed by processes that are killed at any moment, and by several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bisector.app.alerts.alert_context import AlertContext
from bisector.app.alerts.follow_alerts import follow
from bisector.app.alerts.suspects import confirmation_ended, suspect_found
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.alerts import ALL, Alert, AlertFilter
from bisector.model.decisions import Interval
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import Series, owner_of
from tests.support.series.alert_lab import SHAS, AlertLab, Killed, Mortal, a_series, found

WRITES = 12
"""Of the whole story below; a kill around each of them is tried."""


def tell_the_story(lab: AlertLab, context: AlertContext) -> None:
    """Let all happen that happens to two alerts of one cause; each step may have been made before."""
    first = suspect_found(context, found(10, 20), "")
    second = suspect_found(context, found(15, 22, "arm"), "")
    for alert in (first, second):
        confirmation_ended(context, alert.id, "confirmed", None, SHAS[30], "")
    follow(context)
    for _ in range(2):  # the culprit of the first is not in the range of the second
        for summary in lab.store.list(statuses=["queued"]):
            lab.end(summary.id, 12 if SHAS[12] in lab.store.load(summary.id).graph.shas else 17)
        follow(context)
    back = Interval(-0.10, -0.09, -0.08)
    better = suspect_found(context, found(32, 35, direction="improvement", effect=back), "")
    confirmation_ended(context, better.id, "confirmed", None, SHAS[38], "")
    follow(context)


def a_lab() -> AlertLab:
    return AlertLab({name: a_series(name) for name in ("nightly", "arm")})


def what_became(lab: AlertLab) -> list[object]:
    """Return all that is kept, without times."""
    alerts = sorted(lab.alerts.find(), key=lambda alert: alert.id)
    return [
        *((a.id, a.state, a.finding, a.group, a.culprits, a.back_since, a.bisection) for a in alerts),
        *([(e.number, e.who, e.what, e.why) for e in lab.alerts.history(a.id)] for a in alerts),
        sorted((s.id, s.status, s.owner) for s in lab.store.list()),
    ]


def test_the_story_has_as_many_writes() -> None:
    lab = a_lab()
    mortal = Mortal(lab.alerts, 10_000, before=True)
    tell_the_story(lab, lab.context(mortal))
    assert 10_000 - mortal.left == WRITES
    first, second = (lab.alerts.find()[-1], lab.alerts.find()[-2])
    assert (first.state, first.culprits, second.state, second.culprits) == (
        "fixed",
        (SHAS[12],),
        "culprit",
        (SHAS[17],),
    )


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
def test_after_a_kill_around_any_write_all_happens_once(write: int, before: bool) -> None:
    undisturbed, lab = a_lab(), a_lab()
    tell_the_story(undisturbed, undisturbed.context())
    with pytest.raises(Killed):
        tell_the_story(lab, lab.context(Mortal(lab.alerts, write, before=before)))
    tell_the_story(lab, lab.context())
    assert what_became(lab) == what_became(undisturbed)


def test_many_at_once_begin_one_bisection_and_end_it_once() -> None:
    lab = a_lab()
    alerts = [
        suspect_found(lab.context(), found(10, 20), ""),
        suspect_found(lab.context(), found(15, 22, "arm"), ""),
    ]

    def at_once(work: object) -> None:
        threads = [threading.Thread(target=work) for _ in range(6)]  # type: ignore[arg-type]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def confirm() -> None:
        for alert in alerts:
            confirmation_ended(lab.context(), alert.id, "confirmed", None, SHAS[30], "")

    at_once(confirm)
    (summary,) = lab.store.list()
    lab.end(summary.id, 16)
    at_once(lambda: follow(lab.context()))
    for alert in alerts:
        what = [entry.what for entry in lab.alerts.history(alert.id) if not entry.what.startswith("joined")]
        assert what == ["suspect", "confirmed", "bisecting", "culprit"]


def test_what_goes_wrong_with_one_alert_does_not_stop_the_others() -> None:
    lab = a_lab()
    lab.series["arm64"] = a_series("arm64")
    lab.refused = "not yet"
    alerts = []
    for good, bad, series in ((10, 15, "nightly"), (20, 25, "nightly"), (30, 35, "arm"), (31, 34, "arm64")):
        workload = "fake" if series == "nightly" else "another"
        alerts.append(suspect_found(lab.context(), found(good, bad, series, workload=workload), ""))
        confirmation_ended(lab.context(), alerts[-1].id, "confirmed", None, SHAS[38], "")
    lab.refused = ""
    whole = lab.context()

    def commits(repo: str, good: str, bad: str) -> frozenset[str]:
        if good == SHAS[31]:
            raise InfrastructureError("git cannot read the repository", details="bad object")
        return whole.commits(repo, good, bad)

    with pytest.raises(InfrastructureError) as told:
        follow(replace(whole, commits=commits))
    findings = [lab.alerts.load(alert.id).finding for alert in alerts]
    assert findings[:2] == ["bisecting", "bisecting"] and findings[3] == "confirmed"
    wrong = f"alert {alerts[3].id}, series 'arm64': git cannot read the repository: bad object"
    assert told.value.message.splitlines()[-1] == wrong
    follow(whole)
    assert lab.alerts.load(alerts[3].id).finding == "bisecting"


def test_a_worker_that_is_told_to_end_does_not_go_on_with_other_alerts() -> None:
    lab = a_lab()
    lab.refused = "not yet"
    for good, bad in ((10, 15), (20, 25)):
        alert = suspect_found(lab.context(), found(good, bad), "")
        confirmation_ended(lab.context(), alert.id, "confirmed", None, SHAS[30], "")
    asked = []

    def series(name: str) -> Series:
        asked.append(name)
        raise Interrupted("told to end")

    with pytest.raises(Interrupted):
        follow(replace(lab.context(), series=series))
    assert asked == ["nightly"]


def waiting_alerts(lab: AlertLab) -> list[str]:
    """Return the ids of 8 alerts that wait, of two series; beside them, one of a third is bisected."""
    lab.series["weekly"] = a_series("weekly")
    other = suspect_found(lab.context(), found(36, 38, "weekly"), "")
    confirmation_ended(lab.context(), other.id, "confirmed", None, SHAS[38], "")
    lab.refused = "not yet"
    ids = []
    for number in range(8):
        place = 4 * number
        alert = suspect_found(lab.context(), found(place, place + 3, ("nightly", "arm")[number % 2]), "")
        confirmation_ended(lab.context(), alert.id, "confirmed", None, SHAS[38], "")
        ids.append(alert.id)
    lab.refused = ""
    return ids


def count_finds(lab: AlertLab) -> list[AlertFilter]:
    """Return what the store of alerts is asked for from now on."""
    finds: list[AlertFilter] = []
    alerts, original = lab.alerts, lab.alerts.find

    def find(wanted: AlertFilter = ALL, *, after: str = "", limit: int | None = None) -> Sequence[Alert]:
        finds.append(wanted)
        return original(wanted, after=after, limit=limit)

    alerts.find = find  # type: ignore[method-assign]
    return finds


def over_budget(lab: AlertLab, name: str) -> None:
    lab.coordinator.add_machine_time(owner_of(name), 200 * HOUR_SECONDS)


def pause(lab: AlertLab, name: str) -> None:
    lab.series[name] = replace(lab.series[name], state="paused")


def remove(lab: AlertLab, name: str) -> None:
    del lab.series[name]


@pytest.mark.parametrize("stop", [over_budget, pause, remove])
def test_while_a_series_may_begin_nothing_git_and_the_store_are_left_alone(
    stop: Callable[[AlertLab, str], None],
) -> None:
    lab = a_lab()
    ids = waiting_alerts(lab)
    for name in ("nightly", "arm"):
        stop(lab, name)
    follow(lab.context())  # writes down what they wait for
    assert {lab.alerts.load(one).why.partition(":")[0] for one in ids} <= {"waits", "cannot be bisected"}
    assert all("not yet" not in lab.alerts.load(one).why for one in ids)
    asked: list[str] = []
    finds = count_finds(lab)

    def commits(repo: str, good: str, bad: str) -> frozenset[str]:
        asked.append(good)
        return frozenset()

    follow(replace(lab.context(), commits=commits))
    assert asked == [] and len(finds) == 3
    assert len(lab.store.list()) == 1


def test_open_alerts_are_read_once_and_waiting_ones_not_compared_with_each_other() -> None:
    lab = a_lab()
    ids = waiting_alerts(lab)
    lab.refused = "the repository is away"
    asked: list[str] = []
    finds = count_finds(lab)
    whole = lab.context()

    def commits(repo: str, good: str, bad: str) -> frozenset[str]:
        asked.append(good)
        return whole.commits(repo, good, bad)

    follow(replace(whole, commits=commits))
    assert len(finds) == 3 and len(asked) == 2 * len(ids)  # each with the one that is bisected
    assert lab.alerts.load(ids[0]).why.endswith("is away")


def test_a_paused_series_begins_when_it_goes_on() -> None:
    lab = a_lab()
    pause(lab, "nightly")
    alert = suspect_found(lab.context(), found(10, 20), "")
    waits = confirmation_ended(lab.context(), alert.id, "confirmed", None, SHAS[30], "")
    assert waits.why == "waits: the series is paused; 'perfbisect series resume nightly' lets it go on"
    lab.series["nightly"] = a_series()
    follow(lab.context())
    assert lab.alerts.load(alert.id).finding == "bisecting"
