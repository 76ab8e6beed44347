"""What every store of nightly series must do, in memory and in both databases."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bisector.adapters.store.copy_tables import copy_tables
from bisector.adapters.store.database import Database
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.series.memory_series import MemorySeries
from bisector.adapters.store.series.sql_series import SqlSeries
from bisector.errors import NotFound, RequestError
from bisector.model.decisions import Interval
from bisector.model.series import Night, NightVerdict, Point, Series
from bisector.series_ports import SeriesStore

SERIES = Series(
    name="pipe",
    repo="/srv/linux",
    branch="master",
    workload="pipe-test",
    recipe="x86_64-guest",
    testbed="guest",
    cron="30 2 * * *",
    time_zone="Europe/Berlin",
    budget=10.5,
    boots=4,
    reference="a" * 40,
    threshold="2%",
    created_by="ann@host",
)
VERDICT = NightVerdict("suspect", 0.01, 1, 2, Interval(0.01, 0.1 + 0.2, 0.5), None)


@dataclass
class Opened:
    """store: of series; another: opens it as another process would."""

    store: SeriesStore
    another: Callable[[], SeriesStore]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    if request.param == "memory":
        memory = MemorySeries(time.time)
        return Opened(memory, lambda: memory)
    url = request.getfixturevalue("database_url") if request.param == "postgresql" else None

    def open_again() -> Database:
        return open_state_file(tmp_path / "x.sqlite") if url is None else open_server(url)

    return Opened(SqlSeries(open_again()), lambda: SqlSeries(open_again()))


def night(number: int, **more: object) -> Night:
    return replace(Night("pipe", number, 100.0 * number, 100.0 * number), **more)  # type: ignore[arg-type]


def point(number: int, boot: str = "boot-001", *values: float) -> Point:
    return Point(number, boot, "b" * 40, "guest", reference=False, values=values, at=7.5)


def test_a_series_is_kept_as_it_was_given(opened: Opened) -> None:
    before = time.time()
    added = opened.store.add(SERIES)
    assert before - 1 <= added.created <= time.time() + 1
    assert opened.another().load("pipe") == added == replace(SERIES, created=added.created)
    opened.store.add(replace(SERIES, name="idle", threshold=None))
    assert [series.name for series in opened.store.all()] == ["idle", "pipe"]
    with pytest.raises(RequestError, match="there is a series 'pipe' already"):
        opened.another().add(SERIES)
    opened.store.set_state("pipe", "paused", "new fans")
    now = opened.another().load("pipe")
    assert (now.state, now.why) == ("paused", "new fans")


def test_unknown_series_are_named(opened: Opened) -> None:
    opened.store.add(SERIES)
    for ask in (opened.store.load, opened.store.remove, lambda name: opened.store.set_state(name, "paused")):
        with pytest.raises(NotFound, match="no series 'pip'; did you mean 'pipe'"):
            ask("pip")
    assert opened.store.nights("pip") == []
    assert opened.store.points("pip") == []


def test_of_several_that_add_a_night_one_does(opened: Opened) -> None:
    opened.store.add(SERIES)
    assert [store.add_night(night(1)) for store in (opened.store, opened.another())] == [True, False]
    assert not opened.store.add_night(Night("gone", 1, 0.0, 0.0))
    assert opened.store.nights("pipe") == [night(1)]


def test_nights_come_in_the_order_of_history(opened: Opened) -> None:
    opened.store.add(SERIES)
    for one in (night(1), night(2), night(3, place=150.0, kind="backfill")):
        opened.store.add_night(one)
    assert [one.number for one in opened.store.nights("pipe")] == [1, 3, 2]


def test_a_night_is_changed_only_from_the_state_that_was_seen(opened: Opened) -> None:
    opened.store.add(SERIES)
    opened.store.add_night(night(1))
    running = night(1, state="running", commit="b" * 40, bisection="pipe-1", note="force-pushed")
    assert opened.store.change_night(running, "due")
    assert not opened.another().change_night(night(1, state="missed"), "due")
    assert opened.another().nights("pipe") == [running]
    assert not opened.store.change_night(night(2, state="running"), "due")


def test_the_commit_of_a_night_is_written_once(opened: Opened) -> None:
    opened.store.add(SERIES)
    opened.store.add_night(night(1))
    first, second = (night(1, commit=letter * 40, note=letter) for letter in "bc")
    assert [store.set_commit(one) for store, one in ((opened.store, first), (opened.another(), second))] == [
        True,
        False,
    ]
    assert opened.another().nights("pipe") == [first]
    opened.store.add_night(night(2, state="missed"))
    assert not opened.store.set_commit(night(2, commit="b" * 40))
    assert not opened.store.set_commit(night(3, commit="b" * 40))


def test_a_night_ends_once_with_all_its_points(opened: Opened) -> None:
    opened.store.add(SERIES)
    opened.store.add_night(night(1, state="running"))
    ended = night(1, state="measured", verdict=VERDICT)
    points = [point(1, "boot-002", 1.0, 0.1 + 0.2), replace(point(1, "boot-001", 3.0), reference=True)]
    assert [store.end_night(ended, points) for store in (opened.store, opened.another())] == [True, False]
    assert opened.another().nights("pipe") == [ended]
    assert opened.another().points("pipe") == [points[1], points[0]]


def test_nights_for_which_something_is_left_to_do(opened: Opened) -> None:
    opened.store.add(SERIES)
    judged = night(3, state="measured", verdict=NightVerdict("steady"))
    open_ = [
        night(1),
        night(2, state="running"),
        replace(judged, number=4, verdict=None),
        replace(judged, number=5, confirmation="x"),
    ]
    closed = [
        judged,
        night(6, state="missed"),
        replace(judged, number=7, confirmation="x", confirmed="rejected"),
    ]
    for one in (*open_, *closed):
        opened.store.add_night(replace(one, place=float(one.number)))
    found = opened.another().open_nights()
    assert [one.number for one in found] == [1, 2, 4, 5]
    assert [one.is_open for one in opened.store.nights("pipe")] == [
        True,
        True,
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_verdict_is_written_once(opened: Opened) -> None:
    opened.store.add(SERIES)
    opened.store.add_night(night(1, state="measured"))
    assert opened.store.set_verdict(night(1, state="measured", verdict=VERDICT))
    assert not opened.another().set_verdict(night(1, state="measured", verdict=NightVerdict("steady")))
    assert opened.store.nights("pipe")[0].verdict == VERDICT
    assert not opened.store.set_verdict(night(1, state="measured"), begins=1)
    assert not opened.store.nights("pipe")[0].new_level
    opened.store.add_night(night(2, state="measured"))
    assert opened.store.set_verdict(night(2, state="measured", verdict=VERDICT), begins=1)
    assert [one.new_level for one in opened.another().nights("pipe")] == [True, False]


def test_a_night_has_one_confirmation_and_that_one_end(opened: Opened) -> None:
    opened.store.add(SERIES)
    for number in (1, 2):
        opened.store.add_night(night(number, state="measured"))
    begun, later = night(2, state="measured", confirmation="x"), night(2, state="measured", confirmation="y")
    assert opened.store.begin_confirmation(begun)
    assert not opened.another().begin_confirmation(later)
    ended = replace(begun, confirmed="confirmed")
    assert opened.store.end_confirmation(ended, begins=1)
    assert not opened.another().end_confirmation(replace(begun, confirmed="rejected"), begins=2)
    assert opened.another().nights("pipe") == [night(1, state="measured", new_level=True), ended]
    assert opened.store.end_confirmation(replace(later, number=1, confirmed="undecided"), begins=None)
    assert [one.new_level for one in opened.another().nights("pipe")] == [True, False]
    # Who writes a night that was read before must not take the new level back.
    assert opened.store.change_night(night(1, state="measured", note="seen"), "measured")
    assert opened.store.nights("pipe")[0].new_level


def test_a_series_that_is_removed_leaves_nothing(opened: Opened) -> None:
    opened.store.add(SERIES)
    opened.store.add_night(night(1, state="running"))
    opened.store.end_night(night(1, state="measured"), [point(1)])
    opened.store.remove("pipe")
    assert opened.store.all() == []
    assert opened.another().points("pipe") == []
    opened.store.add(SERIES)
    assert opened.store.nights("pipe") == []


def test_db_move_copies_series(tmp_path: Path) -> None:
    old, new = (open_state_file(tmp_path / f"{name}.sqlite") for name in ("old", "new"))
    SqlSeries(old).add(SERIES)
    SqlSeries(old).add_night(night(1, state="running"))
    SqlSeries(old).end_night(night(1, state="measured", verdict=VERDICT), [point(1, "boot-001", 1.5)])
    counts = copy_tables(old, new, lambda text: None)
    assert [counts[name] for name in ("series", "nights", "points")] == [1, 1, 1]
    assert SqlSeries(new).points("pipe") == SqlSeries(old).points("pipe")
