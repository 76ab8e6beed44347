"""A suspect is kept once, and what fresh boots say of it is written down once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.app.alerts.suspects import confirmation_ended, confirmation_lost, suspect_found
from bisector.errors import InfrastructureError
from bisector.model.alerts import BY_PROGRAM, Alert, Finding
from bisector.model.decisions import Interval
from tests.support.series.alert_lab import SHAS, AlertLab, found

FRESH = Interval(0.09, 0.11, 0.13)


def whats(lab: AlertLab, alert: Alert) -> list[str]:
    return [entry.what for entry in lab.alerts.history(alert.id)]


def test_the_same_change_is_one_alert_whose_range_later_nights_make_narrower() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "one night")
    assert (first.finding, first.why, first.group) == ("suspect", "one night", first.id)
    assert suspect_found(lab.context(), found(10, 20), "told again") == first
    narrower = suspect_found(lab.context(), found(12, 18, effect=FRESH), "two nights")
    assert (narrower.id, narrower.last_good, narrower.first_bad) == (first.id, SHAS[12], SHAS[18])
    assert (narrower.effect, narrower.why) == (FRESH, "two nights")
    assert whats(lab, first) == ["suspect", "suspect"]
    assert {entry.who for entry in lab.alerts.history(first.id)} == {BY_PROGRAM}


def test_an_effect_stands_beside_the_metric_and_the_unit_that_it_is_of() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "a tenth longer")
    again = suspect_found(
        lab.context(), found(12, 18, effect=FRESH, metric="latency", unit="s"), "0.11 s longer"
    )
    assert (again.id, again.metric, again.effect, again.unit) == (first.id, "latency", FRESH, "s")


@pytest.mark.parametrize(
    ("more", "good", "bad"),
    [({"direction": "improvement"}, 10, 20), ({"series": "other"}, 10, 20), ({}, 20, 25)],
)
def test_another_change_is_another_alert(more: dict[str, str], good: int, bad: int) -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    assert suspect_found(lab.context(), found(good, bad, **more), "").id != first.id  # type: ignore[arg-type]
    assert lab.alerts.count() == 2


@pytest.mark.parametrize(
    ("finding", "is_same", "then"),
    [
        ("undecided", True, "suspect"),
        ("confirmed", True, "confirmed"),
        ("culprit", True, "culprit"),
        ("not found", True, "not found"),
        ("rejected", False, "suspect"),
    ],
)
def test_a_night_that_shows_a_known_change_again(finding: Finding, is_same: bool, then: Finding) -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    assert lab.alerts.change(replace(first, finding=finding), []) is not None
    again = suspect_found(lab.context(), found(11, 20), "again")
    assert (again.id == first.id, again.finding) == (is_same, then)


def test_a_suspect_of_another_repository_is_another_alert() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    assert suspect_found(lab.context(), found(11, 20, repo="/another"), "").id != first.id


def test_what_people_have_closed_is_not_found_again() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    for finding, triage in (("undecided", "invalid"), ("suspect", "infrastructure")):
        now = lab.alerts.load(first.id)
        assert lab.alerts.change(replace(now, finding=finding, triage=triage), []) is not None  # type: ignore[arg-type]
        again = suspect_found(lab.context(), found(10, 20), "again")
        assert (again.id, again.state) == (first.id, triage)
    assert whats(lab, first) == ["suspect"]


def test_a_range_that_the_repository_has_lost_is_known_by_its_ends() -> None:
    lab = AlertLab()
    lost = replace(found(10, 20), last_good="a" * 40, first_bad="b" * 40)
    first = suspect_found(lab.context(), lost, "")
    assert suspect_found(lab.context(), lost, "") == first
    assert suspect_found(lab.context(), replace(lost, first_bad="c" * 40), "").id != first.id


@pytest.mark.parametrize("outcome", ["rejected", "undecided"])
def test_what_is_not_confirmed_begins_nothing(outcome: Finding) -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    ended = confirmation_ended(lab.context(), first.id, outcome, None, SHAS[25], "8 and 8 boots")  # type: ignore[arg-type]
    assert (ended.finding, ended.effect, ended.tip) == (outcome, first.effect, SHAS[25])
    assert (ended.why, ended.is_open) == ("8 and 8 boots", False)
    assert list(lab.store.list()) == []


def test_a_confirmed_regression_begins_its_bisection() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    ended = confirmation_ended(lab.context(), first.id, "confirmed", FRESH, SHAS[25], "8 and 8 boots")
    assert (ended.finding, ended.effect, ended.tip) == ("bisecting", FRESH, SHAS[25])
    (summary,) = lab.store.list()
    begun = lab.store.load(summary.id)
    assert (ended.bisection, begun.status, begun.owner) == (begun.id, "queued", "series nightly")
    assert begun.priority == 8
    assert (begun.graph.shas[0], begun.graph.shas[-1]) == (SHAS[10], SHAS[25])
    assert whats(lab, first) == ["suspect", "confirmed", "bisecting"]
    again = confirmation_ended(lab.context(), first.id, "rejected", None, SHAS[30], "late")
    assert again == ended and len(lab.store.list()) == 1


def test_what_people_have_closed_is_confirmed_and_not_bisected() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    assert lab.alerts.change(replace(first, triage="infrastructure"), []) is not None
    ended = confirmation_ended(lab.context(), first.id, "confirmed", FRESH, SHAS[25], "")
    assert (ended.finding, ended.state) == ("confirmed", "infrastructure")
    assert list(lab.store.list()) == []


def test_an_improvement_is_kept_and_not_bisected() -> None:
    lab = AlertLab()
    better = found(10, 20, direction="improvement", effect=Interval(-0.12, -0.1, -0.08))
    first = suspect_found(lab.context(), better, "")
    ended = confirmation_ended(lab.context(), first.id, "confirmed", None, SHAS[25], "")
    assert (ended.state, ended.is_open) == ("confirmed", False)
    assert list(lab.store.list()) == []


def test_confirmations_that_are_lost_are_those_of_one_series() -> None:
    lab = AlertLab()
    mine, other = (suspect_found(lab.context(), found(10, 20, name), "") for name in ("nightly", "other"))
    known = suspect_found(lab.context(), found(30, 35), "")
    assert lab.alerts.change(replace(known, finding="confirmed"), []) is not None
    confirmation_lost(lab.context(), "nightly", "the series was removed")
    findings = [lab.alerts.load(one.id).finding for one in (mine, other, known)]
    assert findings == ["undecided", "suspect", "confirmed"]
    assert lab.alerts.load(mine.id).why == "the series was removed"


def test_long_reasons_are_cut() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "x" * 5000)
    ended = confirmation_ended(lab.context(), first.id, "rejected", None, SHAS[25], "y\0" * 5000)
    for alert in (first, ended):
        assert len(alert.why) == 2000 and "\0" not in alert.why


def test_an_alert_that_others_change_all_the_time_is_tried_again_later() -> None:
    lab = AlertLab()
    first = suspect_found(lab.context(), found(10, 20), "")
    alerts = lab.alerts
    original = alerts.load

    def load(identity: str) -> Alert:
        alert = original(identity)
        assert alerts.change(alert, []) is not None
        return alert

    alerts.load = load  # type: ignore[method-assign]
    with pytest.raises(InfrastructureError, match="changed by others again and again"):
        confirmation_ended(lab.context(), first.id, "confirmed", FRESH, SHAS[25], "")
    assert list(lab.store.list()) == []
