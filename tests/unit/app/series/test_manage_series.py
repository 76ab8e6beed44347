"""What people do with series while nights pass, and while other processes write to the same series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.series.sql_series import SqlSeries
from bisector.app.series import manage_series
from bisector.app.series.accept_night import confirmation_bisection, store_once
from bisector.errors import RequestError
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


def test_a_series_that_did_not_rest_loses_no_night_and_a_short_rest_misses_none(lab: SeriesLab) -> None:
    manage_series.pause_series(lab.wiring, "pipe", "")
    manage_series.resume_series(lab.wiring, "pipe")
    assert lab.nights() == [], "no night was due meanwhile"
    lab.now += DAY
    manage_series.resume_series(lab.wiring, "pipe")  # somebody says it once more
    lab.chore.do()
    assert kinds(lab) == [("night", "running")]


def test_a_night_that_is_run_now_is_none_of_the_older_commits(lab: SeriesLab) -> None:
    lab.keep_night("c5")
    (older,) = manage_series.backfill(lab.wiring, "pipe", "c3", 1)
    night = manage_series.run_now(lab.wiring, "pipe")
    assert (night.number, night.kind, night.commit) == (older.number + 1, "night", "")


def test_a_night_that_began_just_now_is_not_begun_twice(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_between(monkeypatch, lambda: lab.store.add_night(Night("pipe", 1, lab.now, lab.now)))
    with pytest.raises(RequestError, match="a night of the series 'pipe' began just now"):
        manage_series.run_now(lab.wiring, "pipe")


def test_older_commits_are_asked_for_though_the_newest_night_failed(lab: SeriesLab) -> None:
    lab.keep_night("c3")
    failed = Night("pipe", 2, lab.now, lab.now, state="failed", commit=lab.origin.ids["c9"])
    lab.store.add_night(failed)
    made = manage_series.backfill(lab.wiring, "pipe", "c0", 1)
    assert [lab.origin.name(night.commit) for night in made] == ["c1", "c2"]


def test_a_series_that_is_removed_ends_a_confirmation_under_way(lab: SeriesLab) -> None:
    lab.keep_night("c1")
    lab.now += DAY
    lab.chore.do()
    (measured, _), series = lab.nights(), lab.store.load("pipe")
    stored = confirmation_bisection(
        lab.wiring, series, 1, series.reference, measured.commit, improved=False, alert="a" * 10
    )
    store_once(lab.wiring, stored)
    assert lab.store.begin_confirmation(replace(measured, confirmation=stored.id))
    assert manage_series.remove_series(lab.wiring, "pipe") == 2
    assert {one.status for one in lab.wiring.store.list()} == {"cancelled"}
