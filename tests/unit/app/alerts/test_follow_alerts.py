"""Alerts are followed by processes that are killed at any moment, and by several at once."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from bisector.app.alerts.alert_context import AlertContext
from bisector.app.alerts.follow_alerts import follow
from bisector.app.alerts.suspects import confirmation_ended, suspect_found
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.decisions import Interval
from bisector.model.series import Series
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
    lab.series["arm64"] = a_series("arm64")
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
