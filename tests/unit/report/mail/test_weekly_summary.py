"""The weekly summary: what is cut, and which messages somebody must look at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.model.alerts import Alert
from bisector.model.decisions import Interval
from bisector.model.outbox import Key, Message, OutboxEntry, State
from bisector.report.mail.weekly_summary import (
    Week,
    alert_line,
    must_be_looked_at,
    render,
    subject,
    undelivered,
)

ENTRY = OutboxEntry(
    3, Key("c", "w", "regression", "lab"), "mail", Message(("a@x",), "slower", ""), "unsure", "", 0, 0, ""
)


def test_long_lists_are_cut_and_empty_ones_say_so() -> None:
    text = render(Week("2026-W47", alerts=[f"alert {n}" for n in range(5000)]))
    assert "alert 29" in text and "alert 30" not in text and "and 4970 more" in text
    assert text.count("  none") == 5 and len(text.splitlines()) < 70
    assert subject(Week("2026-W47", culprits=["c"])).startswith("Week 2026-W47: 1 culprit, 0 open alerts,")


def test_a_small_alert_has_its_size() -> None:
    """It was '0.0% worse', where `alert list` has '+0.0300% worse'."""
    effect = Interval(0.000293, 0.0003, 0.000307)
    alert = Alert("a", "nightly", "pipe", "real", "box", "/linux", "a" * 40, "b" * 40, "regression", effect)
    assert alert_line(alert, "").startswith("pipe on box: +0.0300% worse, ")


def test_no_commit_of_several_is_the_culprit_alone() -> None:
    """A set that cannot be told apart was told as its first commit."""
    effect = Interval(0.02, 0.03, 0.04)
    alert = Alert("a", "nightly", "pipe", "real", "box", "/linux", "a" * 40, "b" * 40, "regression", effect)
    found = replace(alert, finding="culprit", culprits=("c" * 40,), subject="sched: wait")
    first = f'{"c" * 12} ("sched: wait")'
    assert f", culprit {first}, " in alert_line(found, "")
    several = replace(found, culprits=("c" * 40, "d" * 40))
    assert f", culprit among {first} and others, " in alert_line(several, "")


def test_an_undelivered_message_says_why() -> None:
    assert undelivered(replace(ENTRY, note="lost")) == 'message 3 (unsure), to lab, "slower": lost'
    refused = replace(ENTRY, state="refused", refused={"a@x": "550 no"})
    assert undelivered(refused) == 'message 3 (refused), to lab, "slower": a@x: 550 no'
    no_subject = replace(ENTRY, message=replace(ENTRY.message, subject=""))
    assert undelivered(no_subject) == 'message 3 (unsure), to lab, "c": no reason is known'


@pytest.mark.parametrize(
    ("state", "refused", "changed", "expected"),
    [
        ("unsure", {}, 1.0, True),
        ("refused", {}, 1.0, True),
        ("sent", {"a": "no"}, 5.0, True),
        ("sent", {"a": "no"}, 1.0, False),  # told in an earlier week
        ("sent", {}, 5.0, False),
        ("draft", {}, 5.0, False),
    ],
)
def test_what_must_be_looked_at(
    state: State, refused: dict[str, str], changed: float, expected: bool
) -> None:
    entry = replace(ENTRY, state=state, refused=refused, changed=changed)
    assert must_be_looked_at(entry, since=5.0) is expected
