"""Which state of an alert follows which, and by whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.model.alerts import (
    FINDINGS,
    STATES,
    TRIAGES,
    Actor,
    Alert,
    Direction,
    Finding,
    State,
    Triage,
    alert_id,
    why_not,
)
from bisector.model.decisions import Interval

ALERT = Alert("1", "s", "w", "m", "t", "/r", "a", "b", "regression", Interval(0.1, 0.2, 0.3))

PROGRAM_MAY: dict[Finding, set[State]] = {
    "suspect": {"confirmed", "rejected", "undecided"},
    "undecided": {"suspect"},
    "rejected": set(),
    "confirmed": {"bisecting", "culprit", "not found", "fixed"},
    "bisecting": {"culprit", "not found", "confirmed", "fixed"},
    "culprit": {"fixed"},
    "not found": {"fixed"},
}
ANY_TIME: set[State] = {"acknowledged", "invalid", "infrastructure", "wontfix", "duplicate"}


@pytest.mark.parametrize("to", STATES)
@pytest.mark.parametrize("finding", FINDINGS)
def test_what_the_program_may_say(finding: Finding, to: State) -> None:
    alert = replace(ALERT, finding=finding)
    for triage in (None, "acknowledged"):
        told = replace(alert, triage=triage)
        assert (why_not(told, to, "program") is None) == (to in PROGRAM_MAY[finding])
    closed = replace(alert, triage="invalid")  # what people decided stays; what is found out is written down
    assert (why_not(closed, to, "program") is None) == (to in PROGRAM_MAY[finding] - {"fixed"})


@pytest.mark.parametrize("to", STATES)
@pytest.mark.parametrize("finding", FINDINGS)
def test_what_people_may_say(finding: Finding, to: State) -> None:
    alert = replace(ALERT, finding=finding)
    may = set(ANY_TIME)
    if finding in ("rejected", "undecided"):
        may -= {"acknowledged"}
    if finding in ("confirmed", "bisecting", "culprit", "not found"):
        may |= {"fixed"}
    assert (why_not(alert, to, "person") is None) == (to in may)


@pytest.mark.parametrize("to", TRIAGES)
@pytest.mark.parametrize("triage", TRIAGES)
def test_people_may_change_their_mind(triage: Triage, to: Triage) -> None:
    alert = replace(ALERT, finding="culprit", triage=triage)
    assert (why_not(alert, to, "person") is None) == (to != triage or to == "duplicate")


@pytest.mark.parametrize(
    ("finding", "triage", "direction", "to", "by", "why"),
    [
        ("suspect", None, "regression", "culprit", "program", "'culprit' does not follow 'suspect'"),
        ("suspect", None, "regression", "confirmed", "person", "'confirmed' is for the program to find out"),
        ("culprit", None, "regression", "wontfix", "program", "'wontfix' is for people to decide"),
        ("culprit", "invalid", "regression", "fixed", "program", "'fixed' is for people to decide"),
        ("culprit", "fixed", "regression", "fixed", "person", "it is 'fixed' already"),
        ("culprit", None, "improvement", "fixed", "person", "an improvement is nothing to fix"),
        ("suspect", None, "regression", "fixed", "person", "it was never confirmed: it is 'suspect'"),
        ("rejected", None, "regression", "acknowledged", "person", "fresh boots did not confirm it: it is"),
    ],
)
def test_why_not(
    finding: Finding, triage: Triage | None, direction: Direction, to: State, by: Actor, why: str
) -> None:
    alert = replace(ALERT, finding=finding, triage=triage, direction=direction)
    assert (why_not(alert, to, by) or "").startswith(why)


@pytest.mark.parametrize(
    ("finding", "triage", "state", "is_open"),
    [
        ("suspect", None, "suspect", True),
        ("confirmed", None, "confirmed", True),
        ("culprit", "acknowledged", "acknowledged", True),
        ("not found", None, "not found", True),
        ("rejected", None, "rejected", False),
        ("undecided", None, "undecided", False),
        ("rejected", "acknowledged", "rejected", False),
        ("rejected", "invalid", "invalid", False),
        *(("culprit", triage, triage, False) for triage in TRIAGES if triage != "acknowledged"),
    ],
)
def test_the_state_is_what_people_say_or_else_what_was_found_out(
    finding: Finding, triage: Triage | None, state: State, is_open: bool
) -> None:
    alert = replace(ALERT, finding=finding, triage=triage)
    assert (alert.state, alert.is_open) == (state, is_open)


@pytest.mark.parametrize("finding", FINDINGS)
def test_an_improvement_that_was_confirmed_leaves_nothing_to_do(finding: Finding) -> None:
    alert = replace(ALERT, finding=finding, direction="improvement")
    assert alert.is_open == (finding == "suspect")


def test_an_id_is_of_the_change_alone() -> None:
    one = alert_id("s", "a", "b", "regression")
    assert one == alert_id("s", "a", "b", "regression")
    others = {
        alert_id("t", "a", "b", "regression"),
        alert_id("s", "b", "b", "regression"),
        alert_id("s", "a", "c", "regression"),
        alert_id("s", "a", "b", "improvement"),
        alert_id("sa", "", "b", "regression"),
    }
    assert len(one) == 10 and one not in others and len(others) == 5
    assert alert_id("\ud800", "a", "b", "regression")
