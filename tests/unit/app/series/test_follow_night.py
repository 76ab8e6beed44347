"""From a level that moved to its confirmation: what is suspected, of whom, and what follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.model.alerts import Finding, Triage
from bisector.model.series import Night
from bisector.model.stored_bisection import Action
from bisector.schemas.request import read_accepted
from tests.support.series.series_lab import SeriesLab

LEARNT = 16
"""Nights after which a series has verdicts."""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    lab = SeriesLab(tmp_path, monkeypatch)
    lab.add()
    return lab


def learn(lab: SeriesLab) -> None:
    for number in range(1, LEARNT + 1):
        lab.keep_night(f"c{number}")
    lab.push(f"c{LEARNT}")


def until_suspect(lab: SeriesLab, status: str = "suspect") -> Night:
    """Let nights pass until one is suspect; each has a commit of its own."""
    for number in range(len(lab.nights()) + 1, len(lab.nights()) + 8):
        night = lab.night(f"c{number}")
        assert night.verdict is not None
        if night.verdict.status == status:
            return night
    raise AssertionError(f"no night is {status}")


def test_a_regression_is_found_confirmed_and_told(lab: SeriesLab) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    assert lab.alerts.suspects == []
    night = until_suspect(lab)
    assert night.number <= LEARNT + 4
    ((alert, why),) = lab.alerts.suspects
    assert (alert.direction, alert.series, alert.testbed, alert.metric) == (
        "regression",
        "pipe",
        "bed",
        "real",
    )
    assert lab.origin.name(alert.last_good) in {f"c{n}" for n in range(LEARNT - 2, LEARNT + 1)}
    assert alert.effect.low < 0.05 < alert.effect.high
    assert why.startswith(f"night {night.number}: the level moved by")
    ((identity, outcome, effect, tip),) = lab.alerts.ended
    assert (identity, outcome, tip) == ("alert-1", "confirmed", night.commit)
    assert effect is not None
    assert effect.low < 0.05 < effect.high
    assert (night.confirmed, night.confirmation[:10]) == ("confirmed", "pipe-confi")
    stored = lab.wiring.store.load(night.confirmation)
    accepted = read_accepted(stored.request)
    assert stored.graph.shas == (alert.last_good, night.commit)
    assert accepted.night is not None
    assert (accepted.night.alert, accepted.request.find) == ("alert-1", "regression")
    # The nights after it are the new normal: nothing is suspected again.
    (begins,) = [n for n in lab.nights() if n.new_level]
    assert night.verdict is not None
    assert begins.number == night.verdict.first_bad
    for number in range(night.number + 1, night.number + 3):
        lab.night(f"c{number}")
    assert len(lab.alerts.suspects) == 1


def test_an_improvement_is_confirmed_as_one(lab: SeriesLab) -> None:
    lab.culprit, lab.effect = LEARNT + 1, -0.05
    learn(lab)
    night = until_suspect(lab)
    ((alert, _),) = lab.alerts.suspects
    assert alert.direction == "improvement"
    assert read_accepted(lab.wiring.store.load(night.confirmation).request).request.find == "fix"
    ((_, outcome, effect, _),) = lab.alerts.ended
    assert outcome == "confirmed"
    assert effect is not None
    assert effect.high < 0


def test_a_testbed_whose_reference_moved_too_is_taken_out_of_use_and_no_kernel_is_blamed(
    lab: SeriesLab,
) -> None:
    learn(lab)
    lab.testbed_effect = 0.05
    until_suspect(lab, "testbed suspect")
    (status,) = lab.wiring.coordinator.testbeds()
    assert (status.name, status.state, status.by) == ("bed", "suspect", "series pipe")
    assert "the reference by" in status.reason
    assert lab.alerts.suspects == []


def test_a_level_that_moves_without_a_new_commit_is_the_testbeds(lab: SeriesLab) -> None:
    learn(lab)
    lab.unbuildable = [0]  # no reference, which would have told
    lab.testbed_effect = 0.05
    for _ in range(4):
        night = lab.night()
    assert night.verdict is not None
    assert lab.alerts.suspects == []
    assert [status.state for status in lab.wiring.coordinator.testbeds()] == ["suspect"]


@pytest.mark.parametrize(("finding", "triage"), [("bisecting", None), ("suspect", "infrastructure")])
def test_what_alerts_know_already_is_not_confirmed_again(
    lab: SeriesLab, finding: Finding, triage: Triage | None
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    lab.alerts.finding, lab.alerts.triage = finding, triage
    learn(lab)
    night = until_suspect(lab)
    assert night.confirmation == ""
    assert [n.state for n in lab.nights()] == ["measured"] * len(lab.nights())


def test_a_confirmation_that_is_cancelled_is_undecided(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    execute = lab.execute

    def execute_but_cancel() -> int:
        for one in lab.wiring.store.list(statuses=("queued",)):
            if "-confirm-" in one.id:
                lab.wiring.store.set_status(one.id, "cancelled", action=Action("cancelled", "ann", "not now"))
        return execute()

    monkeypatch.setattr(lab, "execute", execute_but_cancel)
    night = until_suspect(lab)
    assert night.confirmed == "undecided"
    assert lab.alerts.ended[0][1:3] == ("undecided", None)


def test_noise_that_doubles_one_day_is_seldom_suspect_and_then_not_confirmed(lab: SeriesLab) -> None:
    learn(lab)
    lab.noise *= 2
    for number in range(LEARNT + 1, LEARNT + 9):
        lab.night(f"c{number}")
    assert [outcome for _, outcome, _, _ in lab.alerts.ended if outcome == "confirmed"] == []
    assert lab.wiring.coordinator.testbeds() == []
