"""Improvements that bring a regression's level back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bisector.app.alerts.follow_alerts import follow
from bisector.app.alerts.level_return import brings_back
from bisector.app.alerts.suspects import confirmation_ended, suspect_found
from bisector.model.alerts import BY_PROGRAM, Alert, Direction, HistoryEntry, Triage
from bisector.model.decisions import Interval
from tests.support.series.alert_lab import SHAS, AlertLab, found


def around(estimate: float, half: float = 0.01) -> Interval:
    return Interval(estimate - half, estimate, estimate + half)


BACK = around(-0.09)


@pytest.mark.parametrize(
    ("lost", "gained", "unit", "expected"),
    [
        (around(0.10), around(-0.091), "", True),
        (around(0.10), around(-0.20), "", True),
        (around(0.10), around(-0.05), "", False),
        (around(0.10), around(-0.07), "", False),  # a third of it is left, beyond chance
        (around(0.10, 0.08), around(-0.03, 0.08), "", False),  # chance may explain it, but most of it is left
        (around(0.10), around(0.09), "", False),
        (around(1.00), around(-0.50), "", True),  # twice as long, then half of that
        (around(-0.10), around(0.11), "", True),  # of a throughput
        (around(-0.10), around(0.02), "", False),
        (around(5.0, 0.1), around(-5.0, 0.1), "s", True),
        (around(5.0, 0.1), around(-3.0, 0.1), "s", False),
    ],
)
def test_what_brings_a_level_back(lost: Interval, gained: Interval, unit: str, expected: bool) -> None:
    regression = found(10, 20, effect=lost, unit=unit)
    improvement = found(30, 35, effect=gained, unit=unit, direction="improvement")
    assert brings_back(regression, [regression, improvement]) == expected


def test_units_must_agree() -> None:
    improvement = found(30, 35, effect=around(-5), unit="s", direction="improvement")
    regression = found(10, 20, effect=around(5))
    assert not brings_back(regression, [regression, improvement])


def a_regression(lab: AlertLab) -> Alert:
    suspect = suspect_found(lab.context(), found(10, 20, effect=around(0.1)), "")
    return confirmation_ended(lab.context(), suspect.id, "confirmed", None, SHAS[25], "")


def an_improvement(lab: AlertLab, effect: Interval = BACK) -> Alert:
    better = found(30, 35, direction="improvement", effect=effect)
    return suspect_found(lab.context(), better, "")


def test_an_improvement_that_was_confirmed_days_before_the_next_look_is_not_forgotten() -> None:
    """The worker was killed before it looked for regressions, and was away for the week."""
    lab = AlertLab()
    alert, better = a_regression(lab), an_improvement(lab)
    told = HistoryEntry(BY_PROGRAM, "confirmed")
    assert lab.alerts.change(replace(better, finding="confirmed", tip=SHAS[38]), [told]) is not None
    lab.clock += 6 * 86_400.0
    follow(lab.context())
    assert lab.alerts.load(alert.id).state == "fixed"


def test_the_level_is_back_then_the_alert_is_fixed_once() -> None:
    lab = AlertLab()
    alert, better = a_regression(lab), an_improvement(lab)
    told = lab.alerts.load(alert.id)
    assert (told.state, told.back_since) == ("bisecting", SHAS[35])
    note = lab.alerts.history(alert.id)[-1]
    assert note.what == "note" and note.why.startswith(
        f"level is back since {SHAS[35][:12]} at the latest (alert {better.id}"
    )
    follow(lab.context())
    assert lab.alerts.load(alert.id) == told
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    fixed = lab.alerts.load(alert.id)
    assert (fixed.state, fixed.is_open) == ("fixed", False)
    whats = [entry.what for entry in lab.alerts.history(alert.id)]
    assert whats[-2:] == ["note", "fixed"] and whats.count("note") == 1
    shown = " at the latest (alert"  # nights before it may have had the old level as well
    assert all(shown in entry.why for entry in lab.alerts.history(alert.id)[-2:])
    reopened = lab.alerts.change(replace(fixed, triage="acknowledged"), [])
    follow(lab.context())
    assert lab.alerts.load(alert.id) == reopened  # people have decided otherwise
    even_better = suspect_found(
        lab.context(), found(36, 38, direction="improvement", effect=around(-0.02)), ""
    )
    confirmation_ended(lab.context(), even_better.id, "confirmed", None, SHAS[39], "")
    assert lab.alerts.load(alert.id).state == "fixed"  # what they said was not about this one


@pytest.mark.parametrize("outcome", ["rejected", "undecided"])
def test_what_is_not_confirmed_is_taken_back(outcome: str) -> None:
    lab = AlertLab()
    alert, better = a_regression(lab), an_improvement(lab)
    confirmation_ended(lab.context(), better.id, outcome, None, SHAS[38], "")  # type: ignore[arg-type]
    assert lab.alerts.load(alert.id).back_since == ""
    assert outcome in lab.alerts.history(alert.id)[-1].why
    written = len(lab.alerts.history(alert.id))
    follow(lab.context())
    assert len(lab.alerts.history(alert.id)) == written


def test_only_an_open_and_confirmed_regression_is_told_that_its_level_is_back() -> None:
    lab = AlertLab()
    suspect = suspect_found(lab.context(), found(10, 20, effect=around(0.1)), "")
    an_improvement(lab)
    assert lab.alerts.load(suspect.id).back_since == "", "nothing is proven of it"
    lab = AlertLab()
    alert = a_regression(lab)
    assert lab.alerts.change(replace(alert, triage="invalid"), []) is not None
    an_improvement(lab)
    assert lab.alerts.load(alert.id).back_since == "", "nobody waits for it"


def test_a_smaller_improvement_says_nothing() -> None:
    lab = AlertLab()
    alert = a_regression(lab)
    better = an_improvement(lab, around(-0.03))
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    assert (lab.alerts.load(alert.id).state, lab.alerts.load(alert.id).back_since) == ("bisecting", "")


def test_an_improvement_before_the_regression_says_nothing() -> None:
    lab = AlertLab()
    better = an_improvement(lab)
    alert = a_regression(lab)
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    assert lab.alerts.load(alert.id).state == "bisecting"


def test_what_people_call_invalid_brings_nothing_back() -> None:
    lab = AlertLab()
    alert, better = a_regression(lab), an_improvement(lab)
    assert lab.alerts.change(replace(better, triage="infrastructure"), []) is not None
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    follow(lab.context())
    assert (lab.alerts.load(alert.id).state, lab.alerts.load(alert.id).back_since) == ("bisecting", "")


def confirmed(
    lab: AlertLab, good: int, bad: int, estimate: float, half: float = 0.01, /, **more: Any
) -> Alert:
    """A change of the series that fresh boots confirm. half: of its interval; more: fields of its alert."""
    direction: Direction = "regression" if estimate > 0 else "improvement"
    effect = around(estimate, half)
    suspect = suspect_found(lab.context(), found(good, bad, direction=direction, effect=effect, **more), "")
    return confirmation_ended(lab.context(), suspect.id, "confirmed", None, SHAS[38], "")


def test_one_improvement_does_not_close_two_regressions() -> None:
    lab = AlertLab()
    first, second = confirmed(lab, 1, 5, 0.05), confirmed(lab, 10, 15, 0.05)
    better = confirmed(lab, 20, 25, -0.048)
    follow(lab.context())
    assert lab.alerts.load(first.id).is_open and lab.alerts.load(first.id).back_since == ""
    assert lab.alerts.load(second.id).state == "fixed"
    why = lab.alerts.history(second.id)[-1].why
    assert why.endswith(
        f"since {SHAS[10][:12]} the series has +5.00% (this alert), -4.80% (alert {better.id}): "
        "together -0.04%"
    )
    another = confirmed(lab, 30, 35, -0.047)
    assert lab.alerts.load(first.id).state == "fixed"
    why = lab.alerts.history(first.id)[-1].why
    for alert in (second, better, another):
        assert f"(alert {alert.id})" in why


@pytest.mark.parametrize("triage", ["invalid", "infrastructure", "duplicate"])
def test_what_was_no_change_of_its_own_does_not_count(triage: Triage) -> None:
    lab = AlertLab()
    first, second = confirmed(lab, 1, 5, 0.05), confirmed(lab, 10, 15, 0.05)
    assert lab.alerts.change(replace(second, triage=triage), []) is not None
    confirmed(lab, 20, 25, -0.048)
    assert lab.alerts.load(first.id).state == "fixed"


def test_a_regression_that_is_only_suspected_keeps_others_open_until_it_is_rejected() -> None:
    lab = AlertLab()
    first = confirmed(lab, 1, 5, 0.05)
    suspect = suspect_found(lab.context(), found(10, 15, effect=around(0.05)), "")
    confirmed(lab, 20, 25, -0.048)
    assert lab.alerts.load(first.id).is_open
    confirmation_ended(lab.context(), suspect.id, "rejected", None, SHAS[38], "")
    follow(lab.context())
    assert lab.alerts.load(first.id).state == "fixed"


def test_an_improvement_that_is_only_suspected_helps_no_other_one() -> None:
    lab = AlertLab()
    first = confirmed(lab, 1, 5, 0.10)
    suspect = suspect_found(lab.context(), found(10, 15, direction="improvement", effect=around(-0.05)), "")
    confirmed(lab, 20, 25, -0.045)
    assert lab.alerts.load(first.id).is_open and lab.alerts.load(first.id).back_since == ""
    confirmation_ended(lab.context(), suspect.id, "confirmed", None, SHAS[38], "")
    follow(lab.context())
    assert lab.alerts.load(first.id).state == "fixed"


@pytest.mark.parametrize("more", [{"metric": "another"}, {"unit": "s"}])
def test_changes_of_another_metric_or_in_another_unit_do_not_count(more: dict[str, object]) -> None:
    lab = AlertLab()
    first, second = confirmed(lab, 1, 5, 0.05), confirmed(lab, 10, 15, 0.05, **more)
    confirmed(lab, 20, 25, -0.048)
    assert lab.alerts.load(first.id).state == "fixed"
    assert lab.alerts.load(second.id).is_open


def test_what_came_after_an_improvement_does_not_count() -> None:
    lab = AlertLab()
    first = confirmed(lab, 1, 5, 0.05)
    better = suspect_found(lab.context(), found(20, 25, direction="improvement", effect=around(-0.048)), "")
    later = confirmed(lab, 30, 35, 0.05)
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    assert lab.alerts.load(first.id).state == "fixed" and lab.alerts.load(later.id).is_open


def test_what_an_earlier_version_told_is_not_told_again() -> None:
    lab = AlertLab()
    alert, better = a_regression(lab), an_improvement(lab)
    why = f"fresh boots confirm that the level is back since {SHAS[35][:12]} (alert {better.id}): told"
    opened = replace(lab.alerts.load(alert.id), triage="acknowledged")
    assert lab.alerts.change(opened, [HistoryEntry(BY_PROGRAM, "fixed", why)]) is not None
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    assert lab.alerts.load(alert.id).state == "acknowledged", "people have opened it again since"


def test_what_a_small_loss_leaves_keeps_its_digits() -> None:
    """It was 'has +0.05% (this alert), -0.05%: together 0.00%'."""
    lab = AlertLab()
    loss = confirmed(lab, 10, 15, 0.0005, 0.00003)
    confirmed(lab, 20, 25, -0.00048, 0.00003)
    follow(lab.context())
    why = lab.alerts.history(loss.id)[-1].why
    assert "the series has +0.050% (this alert), -0.048% (alert " in why and why.endswith("together +0.002%")


def test_what_was_compared_is_told_in_the_unit_of_the_alert() -> None:
    lab = AlertLab()
    lost = found(10, 20, effect=around(5.0, 0.5), unit="s")
    suspect = suspect_found(lab.context(), lost, "")
    alert = confirmation_ended(lab.context(), suspect.id, "confirmed", None, SHAS[25], "")
    back = found(30, 35, direction="improvement", effect=around(-4.5, 0.5), unit="s")
    better = suspect_found(lab.context(), back, "")
    confirmation_ended(lab.context(), better.id, "confirmed", None, SHAS[38], "")
    told = lab.alerts.history(alert.id)[-1]
    assert told.what == "fixed" and told.why.endswith(
        f"since {SHAS[10][:12]} the series has +5 s (this alert), -4.5 s (alert {better.id}): together +0.5 s"
    )
