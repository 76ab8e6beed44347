"""A confirmed alert is bisected once for all that share its cause, within the budget of its series."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bisector.app.alerts.alert_bisections import begin_or_wait, end_of_bisection
from bisector.app.alerts.follow_alerts import follow
from bisector.app.alerts.suspects import confirmation_ended, suspect_found
from bisector.errors import Interrupted
from bisector.model.alerts import MAX_NOTE_CHARACTERS, Alert
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Ending
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import Series, owner_of
from bisector.model.stored_bisection import PRIORITIES, Action
from bisector.schemas.request import Accepted
from tests.support.series.alert_lab import SHAS, AlertLab, a_series, found


def a_lab() -> AlertLab:
    return AlertLab({name: a_series(name) for name in ("nightly", "arm", "weekly")})


def confirmed(lab: AlertLab, good: int, bad: int, series: str = "nightly", tip: int = 30) -> Alert:
    suspect = suspect_found(lab.context(), found(good, bad, series), "")
    return confirmation_ended(lab.context(), suspect.id, "confirmed", None, SHAS[tip], "")


def now(lab: AlertLab, alert: Alert) -> Alert:
    return lab.alerts.load(alert.id)


def test_ranges_that_overlap_share_one_bisection_and_its_culprit() -> None:
    lab = a_lab()
    first, second = confirmed(lab, 10, 20), confirmed(lab, 15, 22, "arm")
    assert (second.finding, second.bisection, second.group) == ("bisecting", first.bisection, first.id)
    assert first.id in second.why and len(lab.store.list()) == 1
    lab.end(first.bisection, 18)
    follow(lab.context())
    for alert in (now(lab, first), now(lab, second)):
        assert (alert.finding, alert.culprits) == ("culprit", (SHAS[18],))
        assert alert.subject == "fake: change number 18"
    third = confirmed(lab, 16, 21, "weekly")
    assert (third.finding, third.culprits, third.group) == ("culprit", (SHAS[18],), first.id)
    assert third.why == f"the culprit of alert {first.id} is in its range"
    assert third.bisection == first.bisection, "where its proof is"
    assert len(lab.store.list()) == 1


def test_equal_ranges_overlap_also_where_the_repository_cannot_list_their_commits() -> None:
    lab = a_lab()
    blind = replace(lab.context(), commits=lambda repo, good, bad: frozenset())
    first, second = confirmed(lab, 10, 20), suspect_found(lab.context(), found(10, 20, "arm"), "")
    shared = confirmation_ended(blind, second.id, "confirmed", None, SHAS[30], "")
    assert (shared.finding, shared.bisection) == ("bisecting", first.bisection)


def test_the_culprit_of_ones_own_bisection_counts_where_the_repository_cannot_list_the_range() -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    lab.end(alert.bisection, 18)
    follow(replace(lab.context(), commits=lambda repo, good, bad: frozenset()))
    assert (now(lab, alert).finding, now(lab, alert).culprits) == ("culprit", (SHAS[18],))


def test_of_many_culprits_an_alert_names_the_first() -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    lab.end(alert.bisection, *range(11, 18))
    follow(lab.context())
    assert now(lab, alert).culprits == SHAS[11:15]


def test_whose_culprit_is_elsewhere_is_bisected_for_itself() -> None:
    lab = a_lab()
    first, second = confirmed(lab, 10, 20), confirmed(lab, 15, 22, "arm")
    lab.end(first.bisection, 12)
    follow(lab.context())
    assert now(lab, first).culprits == (SHAS[12],)
    alone = now(lab, second)
    assert alone.finding == "bisecting" and alone.bisection != first.bisection
    assert lab.store.load(alone.bisection).owner == owner_of("arm")
    last = [(entry.what, entry.why) for entry in lab.alerts.history(second.id)][-2:]
    elsewhere = f"bisection {first.bisection}, of another alert, has not found its culprit"
    assert last == [("confirmed", elsewhere), ("bisecting", f"bisection {alone.bisection}")]


def test_a_culprit_behind_the_range_is_shared_up_to_the_commit_that_fresh_boots_compared() -> None:
    lab = a_lab()
    first, second = confirmed(lab, 10, 20), confirmed(lab, 15, 22, "arm")
    third = confirmed(lab, 16, 21, "weekly", tip=24)
    assert first.bisection == second.bisection == third.bisection
    lab.end(first.bisection, 25)
    follow(lab.context())
    assert now(lab, second).culprits == (SHAS[25],)
    alone = now(lab, third)
    assert alone.finding == "bisecting" and alone.bisection != first.bisection


@pytest.mark.parametrize(
    ("good", "bad", "more"), [(20, 25, {}), (10, 20, {"repo": "/other"}), (10, 20, {"workload": "other"})]
)
def test_other_ranges_repositories_and_workloads_have_their_own(
    good: int, bad: int, more: dict[str, str]
) -> None:
    lab = a_lab()
    first = confirmed(lab, 10, 20)
    suspect = suspect_found(lab.context(), found(good, bad, "arm", **more), "")  # type: ignore[arg-type]
    second = confirmation_ended(lab.context(), suspect.id, "confirmed", None, SHAS[30], "")
    assert second.group == second.id and second.bisection not in ("", first.bisection)


def test_what_people_have_asked_for_goes_before_the_bisection_of_an_alert() -> None:
    lab = a_lab()
    assert lab.store.load(confirmed(lab, 10, 20).bisection).priority == PRIORITIES["low"]


def test_a_closed_alert_draws_nobody_into_its_group() -> None:
    lab = a_lab()
    first = confirmed(lab, 10, 20)
    assert lab.alerts.change(replace(first, triage="invalid"), []) is not None
    second = confirmed(lab, 15, 22, "arm")
    assert second.group == second.id and second.bisection != first.bisection


def test_a_bisection_that_was_removed_is_shared_with_nobody_before_its_own_alert_is_told() -> None:
    """Who joined it would be told "its bisection was removed", and never be bisected."""
    lab = a_lab()
    first = confirmed(lab, 10, 20)
    lab.store.remove(first.bisection)
    second = confirmed(lab, 15, 22, "arm")
    assert second.finding == "bisecting" and second.bisection != first.bisection
    follow(lab.context())
    assert (now(lab, first).finding, now(lab, second).finding) == ("not found", "bisecting")


@pytest.mark.parametrize(
    ("culprit", "finding", "bisections"), [(18, "culprit", 1), (12, "bisecting", 2), (None, "bisecting", 2)]
)
def test_a_bisection_that_has_ended_is_waited_for_until_its_own_alert_is_told(
    culprit: int | None, finding: str, bisections: int
) -> None:
    """Who is confirmed in the seconds between would begin one of its own, for a culprit that is known."""
    lab = a_lab()
    first = confirmed(lab, 10, 20)
    lab.end(first.bisection, *([] if culprit is None else [culprit]))
    second = confirmed(lab, 15, 22, "arm")
    assert second.why == f"waits: what the bisection of alert {first.id} has found is told first"
    assert (second.finding, second.group, len(lab.store.list())) == ("confirmed", first.id, 1)
    follow(lab.context())
    assert now(lab, second).finding == finding
    assert len(lab.store.list()) == bisections


@pytest.fixture
def _in_kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as there:
        there.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_in_kolkata")
def test_over_the_budget_an_alert_waits_and_begins_when_there_is_room() -> None:
    lab = a_lab()
    lab.clock = datetime(2026, 3, 10, 21, tzinfo=UTC).timestamp()
    lab.series["nightly"] = a_series(budget=2.0)
    lab.coordinator.add_machine_time(owner_of("nightly"), 2.5 * HOUR_SECONDS)
    waiting = confirmed(lab, 10, 20)
    assert waiting.finding == "confirmed" and waiting.is_open
    over = "waits: the series has had its 2 machine hours of seven days; not before 2026-03-17 21:00 UTC"
    assert waiting.why == over
    written = len(lab.alerts.history(waiting.id))
    follow(lab.context())
    lab.clock += 24 * HOUR_SECONDS
    lab.coordinator.add_machine_time(owner_of("nightly"), 2.5 * HOUR_SECONDS)
    follow(lab.context())
    assert now(lab, waiting).finding == "confirmed"
    assert len(lab.alerts.history(waiting.id)) == written, "that it takes a day longer is no news"
    lab.clock += 8 * 24 * HOUR_SECONDS
    follow(lab.context())
    assert now(lab, waiting).finding == "bisecting" and len(lab.store.list()) == 1


def test_a_cap_of_the_lab_is_waited_for_where_the_series_has_more() -> None:
    lab = a_lab()
    lab.coordinator.add_machine_time(owner_of("nightly"), 2 * HOUR_SECONDS)
    suspect = suspect_found(lab.context(), found(10, 20), "")
    capped = replace(lab.context(), hours=lambda series: 1.0)
    waiting = confirmation_ended(capped, suspect.id, "confirmed", None, SHAS[30], "")
    assert waiting.why.startswith("waits: the series has had its 1 machine hours of seven days")


def test_within_the_budget_an_alert_does_not_wait() -> None:
    lab = a_lab()
    lab.series["nightly"] = a_series(budget=2.0)
    lab.coordinator.add_machine_time(owner_of("nightly"), 1.5 * HOUR_SECONDS)
    assert confirmed(lab, 10, 20).finding == "bisecting"


def test_of_two_that_wait_one_begins_and_the_other_shares() -> None:
    lab = a_lab()
    for name in ("nightly", "arm"):
        lab.series[name] = a_series(name, budget=1.0)
        lab.coordinator.add_machine_time(owner_of(name), 2 * HOUR_SECONDS)
    first, second = confirmed(lab, 10, 20), confirmed(lab, 15, 22, "arm")
    assert (now(lab, first).finding, second.finding) == ("confirmed", "confirmed")
    assert second.group == first.id
    lab.clock += 8 * 24 * HOUR_SECONDS
    follow(lab.context())
    assert now(lab, first).bisection == now(lab, second).bisection != ""
    assert len(lab.store.list()) == 1


def test_what_cannot_be_bisected_says_why_and_is_tried_again() -> None:
    lab = a_lab()
    lab.refused = "the repository is away"
    alert = confirmed(lab, 10, 20)
    assert (alert.finding, alert.why) == ("confirmed", "cannot be bisected: the repository is away")
    del lab.series["nightly"]
    lab.refused = ""
    follow(lab.context())
    assert now(lab, alert).why == "cannot be bisected: there is no series 'nightly'"
    lab.series["nightly"] = a_series()
    follow(lab.context())
    assert now(lab, alert).finding == "bisecting"


def test_why_something_cannot_be_bisected_is_written_once_however_long_it_is() -> None:
    """Each look, three a minute, would write it again: it is kept cut, and was compared whole."""
    lab = a_lab()
    lab.refused = "git says: " + 3000 * "x"
    alert = confirmed(lab, 10, 20)
    written = lab.alerts.history(alert.id)
    assert len(written[-1].why) == MAX_NOTE_CHARACTERS
    follow(lab.context())
    assert lab.alerts.history(alert.id) == written


def test_who_is_told_to_end_says_of_no_alert_that_it_cannot_be_bisected() -> None:
    lab = a_lab()
    suspect = suspect_found(lab.context(), found(10, 20), "")

    def accept(alert: Alert, series: Series) -> tuple[Accepted, CommitGraph]:
        raise Interrupted("told to end")

    with pytest.raises(Interrupted):
        confirmation_ended(replace(lab.context(), accept=accept), suspect.id, "confirmed", None, SHAS[30], "")
    assert now(lab, suspect).finding == "suspect"


def test_a_bisection_of_a_person_that_finds_nothing_is_not_begun_again() -> None:
    lab, copy = a_lab(), a_lab()
    lab.refused = "not yet"
    alert = confirmed(lab, 10, 20)
    lab.refused = ""
    other = confirmed(copy, 10, 20)
    lab.store.create(replace(copy.store.load(other.bisection), owner="ann@here", status="running"))
    follow(lab.context())
    assert now(lab, alert).bisection == other.bisection
    lab.store.set_status(other.bisection, "cancelled", action=Action("cancelled", "ann@here", "enough"))
    follow(lab.context())
    assert (now(lab, alert).finding, len(lab.store.list())) == ("not found", 1)


def test_the_same_bisection_of_a_person_is_shared() -> None:
    lab = a_lab()
    lab.refused = "not yet"
    alert = confirmed(lab, 10, 20)
    lab.refused = ""
    copy = a_lab()
    other = confirmed(copy, 10, 20)
    lab.store.create(replace(copy.store.load(other.bisection), owner="ann@here", status="running"))
    follow(lab.context())
    assert now(lab, alert).bisection == other.bisection and len(lab.store.list()) == 1
    lab.end(other.bisection, 12)
    follow(lab.context())
    assert now(lab, alert).culprits == (SHAS[12],)


@pytest.mark.parametrize(
    ("ending", "culprits"),
    [(Ending.NOT_REPRODUCED, ()), (Ending.INCONCLUSIVE, ()), (Ending.SPREAD, (12,))],
)
def test_a_bisection_that_finds_nothing(ending: Ending, culprits: tuple[int, ...]) -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    lab.end(alert.bisection, *culprits, ending=ending)
    follow(lab.context())
    ended = now(lab, alert)
    assert (ended.finding, ended.culprits, ended.is_open) == ("not found", (), True)
    assert ended.why == "how it ended"


@pytest.mark.parametrize(
    ("reason", "told"), [("no time", "ann: no time"), ("", "ann"), ("x" * 3000, "ann: xxx")]
)
def test_a_bisection_that_people_end_is_not_begun_again(reason: str, told: str) -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    lab.store.set_status(alert.bisection, "cancelled", action=Action("cancelled", "ann", reason))
    follow(lab.context())
    follow(lab.context())
    assert now(lab, alert).finding == "not found"
    why = now(lab, alert).why
    assert why.startswith(f"its bisection was cancelled by {told}") and why.rstrip(": ") == why
    assert len(why) <= MAX_NOTE_CHARACTERS
    assert len(lab.store.list()) == 1


def test_a_bisection_that_nobody_signed_for_has_ended_too() -> None:
    """Older versions did not write down who cancelled one."""
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    lab.store.set_status(alert.bisection, "cancelled")
    follow(lab.context())
    ended = now(lab, alert)
    assert (ended.finding, ended.why) == ("not found", "its bisection was cancelled")


def test_a_bisection_that_was_removed() -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    lab.store.remove(alert.bisection)
    follow(lab.context())
    assert (now(lab, alert).finding, now(lab, alert).why) == ("not found", "its bisection was removed")


def test_a_failed_bisection_is_told_once_and_again_when_it_goes_on() -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    for status, times in (("running", 0), ("failed", 1), ("running", 2)):
        lab.store.set_status(alert.bisection, status)
        follow(lab.context())
        follow(lab.context())
        history = lab.alerts.history(alert.id)
        assert [entry.what for entry in history[3:]] == ["bisecting"] * times
    assert f"perfbisect resume {alert.bisection}" in history[3].why
    assert now(lab, alert).why == f"bisection {alert.bisection} goes on"


def test_what_people_say_meanwhile_stays_and_the_end_is_written_down() -> None:
    lab = a_lab()
    alert = confirmed(lab, 10, 20)
    assert lab.alerts.change(replace(alert, triage="acknowledged", assignee="ann"), []) is not None
    lab.end(alert.bisection, 12)
    follow(lab.context())
    ended = now(lab, alert)
    assert (ended.state, ended.finding, ended.assignee) == ("acknowledged", "culprit", "ann")


def test_of_two_workers_that_confirm_one_cause_at_once_one_begins_and_the_other_shares() -> None:
    lab = a_lab()
    first = suspect_found(lab.context(), found(10, 20), "")
    second = suspect_found(lab.context(), found(15, 22, "arm"), "")
    context, calls = lab.context(), []

    def accept(alert: Alert, series: Series) -> tuple[Accepted, CommitGraph]:
        calls.append(alert.id)
        if len(calls) == 1:  # we have looked at the others; now another worker is quicker
            confirmation_ended(lab.context(), second.id, "confirmed", None, SHAS[30], "")
        return context.accept(alert, series)

    ended = confirmation_ended(replace(context, accept=accept), first.id, "confirmed", None, SHAS[30], "")
    assert ended.bisection == now(lab, second).bisection != ""
    assert len(lab.store.list()) == 1 and calls == [first.id]


def test_of_two_workers_with_old_views_one_comes_too_late() -> None:
    lab = a_lab()
    first = suspect_found(lab.context(), found(10, 20), "")
    second = suspect_found(lab.context(), found(15, 22, "arm"), "")
    views = [replace(alert, finding="confirmed", tip=SHAS[30]) for alert in (first, second)]
    begun = begin_or_wait(lab.context(), views[0])
    assert begun is not None and begun.finding == "bisecting"
    assert begin_or_wait(lab.context(), views[0]) is None
    lab.end(begun.bisection, 12)
    ended = end_of_bisection(lab.context(), begun)
    assert ended is not None and ended.finding == "culprit"
    assert end_of_bisection(lab.context(), begun) is None
    assert len(lab.alerts.history(first.id)) == 3
