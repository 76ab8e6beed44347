"""What people do with series while nights pass, and while other processes write to the same series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.series.sql_series import SqlSeries
from bisector.app.series import manage_series
from bisector.model.series import Night, NightState
from tests.support.series.series_lab import DAY, SeriesLab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    lab = SeriesLab(tmp_path, monkeypatch)
    lab.add()
    return lab


def write_in_between(monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]) -> None:
    """Let another process write after the next look at the nights of a series."""
    nights, waiting = SqlSeries.nights, [write]

    def then_write(self: SqlSeries, name: str) -> Sequence[Night]:
        found = nights(self, name)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(SqlSeries, "nights", then_write)


def kinds(lab: SeriesLab) -> list[tuple[str, str]]:
    return sorted((night.kind, night.state) for night in lab.nights())


def test_no_commit_is_lost_where_a_night_takes_the_number_of_a_back_filled_one(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.keep_night("c5")
    night = Night("pipe", 2, lab.now, lab.now)
    write_in_between(monkeypatch, lambda: lab.store.add_night(night))
    made = manage_series.backfill(lab.wiring, "pipe", "c2", 1)
    assert [(one.number, lab.origin.name(one.commit)) for one in made] == [(3, "c3"), (4, "c4")]
    assert len(lab.nights()) == 4


def test_what_two_people_back_fill_at_once_is_measured_once(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.keep_night("c5")
    others: list[Night] = []

    def back_fill() -> None:
        others.extend(manage_series.backfill(lab.wiring, "pipe", "c2", 1))

    write_in_between(monkeypatch, back_fill)
    assert manage_series.backfill(lab.wiring, "pipe", "c2", 1) == []
    assert len(others) == 2
    assert len(lab.nights()) == 3


@pytest.mark.parametrize("state", ["failed", "missed"])
def test_an_older_commit_that_was_not_measured_is_asked_for_again(lab: SeriesLab, state: NightState) -> None:
    lab.keep_night("c5")
    first, _ = manage_series.backfill(lab.wiring, "pipe", "c2", 1)
    assert lab.store.change_night(replace(first, state=state, why="it did not build"), "due")
    (again,) = manage_series.backfill(lab.wiring, "pipe", "c2", 1)
    assert (again.commit, again.number) == (first.commit, 4)


def test_nothing_is_back_filled_in_a_series_that_is_removed_meanwhile(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.keep_night("c5")
    write_in_between(monkeypatch, lambda: lab.store.remove("pipe"))
    assert manage_series.backfill(lab.wiring, "pipe", "c2", 1) == []


@pytest.mark.parametrize("since", [None, "c2"])
def test_nights_of_a_rest_are_missed_whatever_was_back_filled_meanwhile(
    lab: SeriesLab, since: str | None
) -> None:
    lab.keep_night("c5")
    manage_series.pause_series(lab.wiring, "pipe", "the lab moves")
    lab.now += 3 * DAY
    if since is not None:
        manage_series.backfill(lab.wiring, "pipe", since, 1)
    manage_series.resume_series(lab.wiring, "pipe")
    (missed,) = [night for night in lab.nights() if night.state == "missed"]
    assert missed.why == "the series was paused until then: the lab moves"
    lab.chore.do()
    assert [state for kind, state in kinds(lab) if kind == "night"] == ["measured", "missed"]


def test_nights_of_a_rest_are_missed_where_another_night_takes_their_number(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.keep_night("c5")
    manage_series.pause_series(lab.wiring, "pipe", "")
    lab.now += 3 * DAY
    filled = Night("pipe", 2, lab.now, lab.now - 4 * DAY, kind="backfill", commit=lab.origin.ids["c3"])
    write_in_between(monkeypatch, lambda: lab.store.add_night(filled))
    manage_series.resume_series(lab.wiring, "pipe")
    assert kinds(lab) == [("backfill", "due"), ("night", "measured"), ("night", "missed")]
