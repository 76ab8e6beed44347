"""What people say of alerts: it is kept with who said it and why, or refused as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.app.alerts.alert_changes import AlertChange, find_alert, read_states, set_alert
from bisector.app.alerts.suspects import suspect_found
from bisector.errors import NotFound, RequestError
from bisector.model.alerts import (
    MAX_ENTRIES,
    MAX_NAME_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    Alert,
    HistoryEntry,
)
from tests.support.series.alert_lab import AlertLab, found


@pytest.fixture
def lab() -> AlertLab:
    return AlertLab()


@pytest.fixture
def alert(lab: AlertLab) -> Alert:
    return suspect_found(lab.context(), found(10, 20), "")


@pytest.fixture
def other(lab: AlertLab) -> Alert:
    return suspect_found(lab.context(), found(30, 35), "")


def told(lab: AlertLab, alert: Alert) -> list[tuple[str, str, str]]:
    return [(e.who, e.what, e.why) for e in lab.alerts.history(alert.id)[1:]]


def test_all_that_is_said_is_kept_with_who_and_why(lab: AlertLab, alert: Alert) -> None:
    said = AlertChange("acknowledged", "ann", "looks real")
    changed = set_alert(lab.alerts, alert.id, said, "bob")
    assert (changed.state, changed.finding, changed.assignee) == ("acknowledged", "suspect", "ann")
    set_alert(lab.alerts, alert.id, AlertChange(note="see the tracker"), "ann")
    set_alert(lab.alerts, alert.id, AlertChange(assignee="", note="on leave"), "ann")
    assert told(lab, alert) == [
        ("bob", "acknowledged", "looks real"),
        ("bob", "assigned to ann", ""),
        ("ann", "note", "see the tracker"),
        ("ann", "assigned to nobody", "on leave"),
    ]


def test_what_is_so_already_is_not_told_again(lab: AlertLab, alert: Alert) -> None:
    first = set_alert(lab.alerts, alert.id, AlertChange(assignee="ann"), "bob")
    assert set_alert(lab.alerts, alert.id, AlertChange(assignee="ann"), "bob") == first
    set_alert(lab.alerts, alert.id, AlertChange(assignee="ann", note="still hers"), "bob")
    assert told(lab, alert) == [("bob", "assigned to ann", ""), ("bob", "note", "still hers")]


def test_a_duplicate_joins_the_group(lab: AlertLab, alert: Alert, other: Alert) -> None:
    changed = set_alert(
        lab.alerts, other.id, AlertChange("duplicate", duplicate_of=alert.id[:6], note="same"), "ann"
    )
    assert (changed.state, changed.duplicate_of, changed.group) == ("duplicate", alert.id, alert.id)
    assert told(lab, other) == [("ann", f"duplicate of {alert.id}", "same")]
    third = suspect_found(lab.context(), found(36, 38), "")
    grouped = lab.alerts.change(replace(alert, group="their first"), [])
    assert grouped is not None
    assert set_alert(lab.alerts, third.id, AlertChange(duplicate_of=alert.id), "ann").group == "their first"
    again = set_alert(lab.alerts, other.id, AlertChange("acknowledged"), "ann")
    assert (again.state, again.duplicate_of, again.group) == ("acknowledged", "", other.id)
    noted = set_alert(lab.alerts, alert.id, AlertChange("acknowledged"), "ann")
    assert noted.group == "their first", "no duplicate was taken back"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (AlertChange(), "nothing is said that should change"),
        (AlertChange("duplicate"), "of which alert is it a duplicate"),
        (AlertChange("invalid", duplicate_of="x"), "a duplicate is not 'invalid' as well"),
        (AlertChange("fixed"), "cannot be 'fixed': it was never confirmed: it is 'suspect'"),
        (AlertChange(note="x" * 2001), "the note has 2,001 characters; at most 2,000"),
        (AlertChange(assignee="x" * 201), "the name has 201 characters; at most 200"),
        (AlertChange(note="a\0b"), "the note is not text in UTF-8"),
        (AlertChange(assignee="\ud800"), "the name is not text in UTF-8"),
        (AlertChange(assignee=" "), "the name is empty"),
        (AlertChange("acknowledged", note=" \n"), "the note is empty"),
        (AlertChange(assignee="ann\nRow  of another"), "the name has a line break"),
        (AlertChange(assignee="ann\u202e"), "another character that is not printed"),
        (AlertChange(duplicate_of="0123"), "there is no alert '0123'"),
        (AlertChange(note="x", revision=7), "was changed meanwhile .it has revision 1 now"),
    ],
)
def test_what_is_refused_changes_nothing(
    lab: AlertLab, alert: Alert, change: AlertChange, words: str
) -> None:
    with pytest.raises(RequestError, match=words) as error:
        set_alert(lab.alerts, alert.id, change, "ann")
    assert error.value.cure
    assert lab.alerts.load(alert.id) == alert and told(lab, alert) == []


def test_duplicates_make_no_circle(lab: AlertLab, alert: Alert, other: Alert) -> None:
    with pytest.raises(RequestError, match="cannot be a duplicate of itself"):
        set_alert(lab.alerts, alert.id, AlertChange(duplicate_of=alert.id), "ann")
    set_alert(lab.alerts, other.id, AlertChange(duplicate_of=alert.id), "ann")
    with pytest.raises(RequestError, match="is itself a duplicate") as error:
        set_alert(lab.alerts, alert.id, AlertChange(duplicate_of=other.id), "ann")
    assert error.value.cure == f"give --duplicate-of {alert.id}"
    third = suspect_found(lab.context(), found(36, 38), "")
    with pytest.raises(RequestError, match="is itself a duplicate"):
        set_alert(lab.alerts, third.id, AlertChange("duplicate", duplicate_of=other.id), "ann")


def test_a_note_and_a_name_may_be_as_long_as_is_said(lab: AlertLab, alert: Alert) -> None:
    longest = AlertChange(note="x" * MAX_NOTE_CHARACTERS, assignee="y" * MAX_NAME_CHARACTERS)
    assert set_alert(lab.alerts, alert.id, longest, "ann").assignee == "y" * MAX_NAME_CHARACTERS


def test_who_has_seen_an_older_revision_is_told(lab: AlertLab, alert: Alert) -> None:
    seen = AlertChange("invalid", revision=alert.revision)
    set_alert(lab.alerts, alert.id, AlertChange("acknowledged"), "bob")
    with pytest.raises(RequestError, match="was changed meanwhile"):
        set_alert(lab.alerts, alert.id, seen, "ann")
    assert lab.alerts.load(alert.id).state == "acknowledged"


def test_a_change_is_made_to_what_the_program_wrote_just_before(lab: AlertLab, alert: Alert) -> None:
    original, left = lab.alerts.history, 3

    def history(identity: str) -> object:  # between the look and the change
        nonlocal left
        left -= 1
        if left >= 0:
            now = lab.alerts.load(identity)
            lab.alerts.change(replace(now, why=f"{now.why}!"), [])
        return original(identity)

    lab.alerts.history = history  # type: ignore[assignment, method-assign]
    changed = set_alert(lab.alerts, alert.id, AlertChange("invalid"), "ann")
    assert (changed.state, changed.why, changed.revision) == ("invalid", "!!!", 5)
    left = 1000
    with pytest.raises(RequestError, match="was changed meanwhile"):
        set_alert(lab.alerts, alert.id, AlertChange("wontfix"), "ann")


def test_a_history_has_an_end_for_people_alone(lab: AlertLab, alert: Alert) -> None:
    full = lab.alerts.change(alert, [HistoryEntry("ann", "note", "x")] * (MAX_ENTRIES - 2))
    assert full is not None
    set_alert(lab.alerts, alert.id, AlertChange(note="the last one"), "ann")
    with pytest.raises(RequestError, match="has 1,000 entries"):
        set_alert(lab.alerts, alert.id, AlertChange(note="one more"), "ann")
    now = lab.alerts.load(alert.id)
    assert (
        lab.alerts.change(replace(now, finding="confirmed"), [HistoryEntry("perfbisect", "confirmed")])
        is not None
    )


def test_alerts_are_found_by_the_beginning_of_their_id(lab: AlertLab, alert: Alert, other: Alert) -> None:
    assert find_alert(lab.alerts, alert.id) == alert
    assert find_alert(lab.alerts, alert.id[:6]) == alert
    with pytest.raises(NotFound, match="there is no alert ''"):
        find_alert(lab.alerts, "")
    twin = replace(other, id=f"{alert.id[:9]}z", group="")
    lab.alerts.add(twin, HistoryEntry("x", "suspect"))
    with pytest.raises(RequestError, match="is the beginning of several alerts") as error:
        find_alert(lab.alerts, alert.id[:9])
    assert alert.id in error.value.details and twin.id in error.value.details


def test_states_are_read_with_the_nearest_one_named() -> None:
    assert read_states(["not found", " culprit "]) == ("culprit", "not found")
    with pytest.raises(RequestError, match="'culprt' is not a state of an alert; did you mean 'culprit'"):
        read_states(["culprt"])
