"""The whole chain: nights, a suspect, its confirmation, the bisection that follows, its culprit.

A real repository, a real database, the real detector and planners; what boots measure is drawn from levels.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.sqlite_file import SqliteFile
from bisector.app import accept
from bisector.app.alerts.alert_context import alert_context, open_alerts
from bisector.app.alerts.follow_alerts import follow
from bisector.app.series.alert_sink import AlertsOfSeries
from bisector.app.series.night_chore import NightChore
from bisector.app.wiring import Wiring
from bisector.model.alerts import Alert
from bisector.model.commit_graph import CommitGraph
from bisector.schemas.request import Accepted, Request
from tests.support.series.series_lab import SeriesLab

LEARNT = 16
"""Nights after which a series has verdicts."""
KILLS, KILLED_WRITES = 12, 0.3
"""Of one story, which has some 40 writes besides those of bisections, and the part of them that kill."""


class Killed(BaseException):
    """The process ended here."""


class ChainLab(SeriesLab):
    """A series whose suspects become alerts, and those bisections."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, monkeypatch)
        monkeypatch.setattr(accept, "accept", self._accept_range)
        self.may_die = True
        self.follow: Callable[[], None]
        self.begin_process()

    def begin_process(self) -> None:
        """Do what a worker does when it starts: nothing of an earlier one is known but the database."""
        self.wiring = Wiring(self.wiring.settings)
        context = alert_context(self.wiring)
        self.chore = NightChore(self.wiring, AlertsOfSeries(context))
        self.follow = partial(follow, context)

    def work(self) -> None:
        """Do what the nights ask for, then what alerts do."""
        for _ in range(4):
            super().work()
            self.follow()

    def execute(self) -> int:
        """Carry out what is queued; tests/campaign kills that."""
        self.may_die = False
        done = super().execute()
        self.may_die = True
        return done

    def known(self) -> list[Alert]:
        return list(open_alerts(self.wiring).find())

    def history(self, alert: Alert) -> list[str]:
        return [entry.what for entry in open_alerts(self.wiring).history(alert.id)]

    def learn(self) -> None:
        for number in range(1, LEARNT + 1):
            self.keep_night(f"c{number * 2}")

    def nights_from(self, first: int, count: int) -> None:
        """Let so many nights pass, with two commits each."""
        for number in range(first, first + count):
            self.night(f"c{number * 2}")

    def _accept_range(self, wiring: Wiring, request: Request) -> tuple[Accepted, CommitGraph]:
        source = wiring.source(request.repo)
        return self._accept(wiring, request, request.good, request.bad), source.graph(
            request.good, request.bad
        )


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChainLab:
    lab = ChainLab(tmp_path, monkeypatch)
    lab.add()
    lab.learn()
    return lab


def test_a_step_becomes_a_suspect_is_confirmed_and_bisected_to_its_culprit(lab: ChainLab) -> None:
    lab.culprit, lab.effect = 2 * LEARNT + 1, 0.05
    lab.nights_from(LEARNT + 1, 3)
    (alert,) = lab.known()
    assert (alert.state, alert.direction) == ("culprit", "regression")
    assert alert.culprits == (lab.origin.ids[f"c{lab.culprit}"],)
    assert alert.subject == f"change c{lab.culprit}"
    assert lab.history(alert) == ["suspect", "confirmed", "bisecting", "culprit"]
    assert alert.effect.low < 0.05 < alert.effect.high
    stored = lab.wiring.store.load(alert.bisection)
    assert (stored.owner, stored.graph.shas[stored.graph.good]) == ("series pipe", alert.last_good)


def test_noise_that_doubles_begins_no_bisection(lab: ChainLab) -> None:
    lab.noise *= 2
    lab.nights_from(LEARNT + 1, 3)
    assert {alert.finding for alert in lab.known()} <= {"rejected", "undecided"}
    assert not any(alert.bisection for alert in lab.known())


def test_a_reference_that_moves_too_is_the_testbeds_and_no_alert(lab: ChainLab) -> None:
    lab.testbed_effect = 0.05
    lab.nights_from(LEARNT + 1, 3)
    assert lab.known() == []
    assert [status.state for status in lab.wiring.coordinator.testbeds()] == ["suspect"]


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_that_is_killed_again_and_again_finds_the_same_once(
    lab: ChainLab, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    lab.culprit, lab.effect = 2 * LEARNT + 1, 0.05
    draw, left = random.Random(seed), KILLS
    execute = SqliteFile.execute

    def die_at_times(database: SqliteFile, statement: str, **values: Any) -> object:
        nonlocal left
        writes = statement.startswith(("INSERT", "UPDATE", "COMMIT"))
        if not (writes and left and lab.may_die and draw.random() < KILLED_WRITES):
            return execute(database, statement, **values)
        left -= 1
        if draw.random() < 0.5:
            execute(database, statement, **values)
        raise Killed

    monkeypatch.setattr(SqliteFile, "execute", die_at_times)
    for number in range(LEARNT + 1, LEARNT + 4):
        try:
            lab.night(f"c{number * 2}")
        except Killed:
            finish(lab)
    assert left == 0
    finish(lab)
    monkeypatch.undo()
    (alert,) = lab.known()
    assert alert.culprits == (lab.origin.ids[f"c{lab.culprit}"],)
    assert lab.history(alert) == ["suspect", "confirmed", "bisecting", "culprit"]
    ids = [one.id for one in lab.wiring.store.list()]
    assert len([name for name in ids if "-night-" not in name and "-confirm-" not in name]) == 1


def finish(lab: ChainLab) -> None:
    """Begin processes until one has done all that is due."""
    while True:
        try:
            lab.begin_process()
            lab.work()
        except Killed:
            continue
        return
