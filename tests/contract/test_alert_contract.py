"""What every AlertStore must do, asked of the real one on both databases and of the fake."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bisector.adapters.store.alerts.memory_alerts import MemoryAlerts
from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.alert_ports import AlertStore
from bisector.errors import NotFound, RequestError
from bisector.model.alerts import BY_PROGRAM, NOTE, Alert, AlertFilter, HistoryEntry, alert_id
from bisector.model.decisions import Interval
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear
from bisector.store_ports import Store

FOUND = HistoryEntry(BY_PROGRAM, "suspect", "three nights")


@dataclass
class Alerts:
    """kept, store: of one database. another: opens the alerts as another process would."""

    kept: AlertStore
    store: Store
    another: Callable[[], AlertStore]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def alerts(request: pytest.FixtureRequest, tmp_path: Path) -> Alerts:
    if request.param == "memory":
        store = MemoryStore()
        memory = MemoryAlerts(store, time.time)
        return Alerts(memory, store, lambda: memory)
    if request.param == "sqlite":
        database = open_state_file(tmp_path / "state.sqlite")
        return Alerts(
            SqlAlerts(database),
            SqlStore(database),
            lambda: SqlAlerts(open_state_file(tmp_path / "state.sqlite")),
        )
    url = request.getfixturevalue("database_url")
    database = open_server(url)
    return Alerts(SqlAlerts(database), SqlStore(database), lambda: SqlAlerts(open_server(url)))


def alert(number: int = 1, **said: object) -> Alert:
    series = str(said.pop("series", "nightly"))
    good, bad = f"{number:040x}", f"{number + 1:040x}"
    plain = Alert(
        id=alert_id(series, good, bad, "regression"),
        series=series,
        workload="pipe-test",
        metric="real",
        testbed="guest",
        repo="/srv/linux",
        last_good=good,
        first_bad=bad,
        direction="regression",
        effect=Interval(0.1, 0.1 + 0.2, 0.5),
    )
    return replace(plain, **said)  # type: ignore[arg-type]


def bisection(name: str) -> Stored:
    return Stored(name, 1.0, '{"repo": "/x"}', "queued", linear(4))


def test_what_is_added_is_kept_whole(alerts: Alerts) -> None:
    given = alert(
        unit="s",
        tip="e" * 40,
        finding="culprit",
        triage="acknowledged",
        why="because \u202e\x1b[31m ü",
        bisection="b",
        culprits=("a" * 40, "b" * 40),
        subject="sched: x",
        back_since="c" * 40,
        duplicate_of="d",
        assignee="me <me@x>",
    )
    before = time.time()
    kept = alerts.kept.add(given, FOUND)
    assert kept == replace(given, group=given.id, created=kept.created, changed=kept.changed, revision=1)
    assert before - 1 <= kept.created == kept.changed <= time.time() + 1
    assert alerts.another().load(given.id) == kept
    (entry,) = alerts.kept.history(given.id)
    assert (entry.number, entry.who, entry.what, entry.why) == (1, BY_PROGRAM, "suspect", "three nights")


def test_an_alert_that_is_known_is_not_added_again(alerts: Alerts) -> None:
    first = alerts.kept.add(alert(), FOUND)
    assert alerts.another().add(alert(finding="culprit"), FOUND) == first
    assert len(alerts.kept.history(first.id)) == 1


def test_an_unknown_alert_is_refused_with_the_nearest_id(alerts: Alerts) -> None:
    known = alerts.kept.add(alert(), FOUND).id
    near = known[:-1] + ("0" if known[-1] != "0" else "1")
    with pytest.raises(NotFound, match=f"there is no alert '{near}'.*{known}"):
        alerts.kept.load(near)
    assert alerts.kept.history(near) in ([], ())


def test_of_two_changes_of_one_revision_the_second_is_refused(alerts: Alerts) -> None:
    first = alerts.kept.add(alert(), FOUND)
    mine = alerts.kept.change(replace(first, assignee="me"), [HistoryEntry("me", "assigned to me")])
    assert mine is not None and (mine.revision, mine.assignee) == (2, "me")
    assert (
        alerts.another().change(replace(first, assignee="you"), [HistoryEntry("you", "assigned to you")])
        is None
    )
    assert alerts.kept.load(first.id) == mine
    assert [entry.what for entry in alerts.kept.history(first.id)] == ["suspect", "assigned to me"]
    assert alerts.kept.change(replace(mine, id="unknown"), []) is None


def test_of_many_at_once_each_change_is_kept_or_refused(alerts: Alerts) -> None:
    first = alerts.kept.add(alert(), FOUND)
    done: list[int] = []

    def write(number: int) -> None:
        kept = alerts.another()
        for _ in range(5):
            now = kept.load(first.id)
            if (
                kept.change(replace(now, why=f"{now.why}{number}"), [HistoryEntry(str(number), NOTE)])
                is not None
            ):
                done.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now, history = alerts.kept.load(first.id), alerts.kept.history(first.id)
    assert now.revision == 1 + len(done) == len(history)
    assert sorted(now.why) == sorted(map(str, done))
    assert [entry.number for entry in history] == list(range(1, len(history) + 1))


def test_what_was_seen_must_be_unchanged(alerts: Alerts) -> None:
    first, second = alerts.kept.add(alert(1), FOUND), alerts.kept.add(alert(5), FOUND)
    assert alerts.kept.change(replace(second, finding="confirmed"), []) is not None
    begun = alerts.kept.change(
        replace(first, finding="bisecting"), [], begin=bisection("one"), seen=[second, first]
    )
    assert begun is None and alerts.kept.load(first.id) == first
    assert [one.id for one in alerts.store.list()] == []


def test_a_bisection_is_created_with_the_change_or_neither_is(alerts: Alerts) -> None:
    first = alerts.kept.add(alert(), FOUND)
    alerts.store.create(bisection("taken"))
    begun = replace(first, finding="bisecting", bisection="taken")
    with pytest.raises(RequestError, match="the bisection 'taken' exists already"):
        alerts.kept.change(begun, [HistoryEntry(BY_PROGRAM, "bisecting")], begin=bisection("taken"))
    assert (alerts.kept.load(first.id), len(alerts.kept.history(first.id))) == (first, 1)
    begun = replace(first, finding="bisecting", bisection="own")
    assert (
        alerts.kept.change(begun, [HistoryEntry(BY_PROGRAM, "bisecting")], begin=bisection("own")) is not None
    )
    assert alerts.store.status("own") == "queued"
    assert alerts.kept.load(first.id).bisection == "own"
    assert alerts.kept.change(begun, [], begin=bisection("another")) is None
    assert {one.id for one in alerts.store.list()} == {"own", "taken"}


def test_alerts_are_found_by_what_they_are(alerts: Alerts) -> None:
    made = [
        alert(1),
        alert(2, finding="confirmed"),
        alert(3, finding="rejected"),
        alert(4, series="other", workload="db-aio", finding="culprit"),
        alert(5, finding="culprit", triage="wontfix"),
        alert(6, finding="bisecting", triage="acknowledged"),
        alert(7, finding="culprit", direction="improvement"),
    ]
    kept = [alerts.kept.add(one, FOUND) for one in made]
    kept[1] = alerts.kept.change(replace(kept[1], group=kept[0].id), []) or kept[1]
    ids = [one.id for one in kept]

    def numbers(wanted: AlertFilter) -> list[int]:
        found = alerts.kept.find(wanted)
        assert alerts.kept.count(wanted) == len(found)
        return sorted(ids.index(one.id) + 1 for one in found)

    assert numbers(AlertFilter()) == [1, 2, 3, 4, 5, 6, 7]
    assert numbers(AlertFilter(open=True)) == [1, 2, 4, 6]
    assert numbers(AlertFilter(open=False)) == [3, 5, 7]
    assert numbers(AlertFilter(series="other")) == [4]
    assert numbers(AlertFilter(workload="pipe-test", findings=("culprit",))) == [5, 7]
    assert numbers(AlertFilter(states=("culprit", "acknowledged"))) == [4, 6, 7]
    assert numbers(AlertFilter(beginning=ids[2][:8])) == [3]
    assert numbers(AlertFilter(group=ids[0])) == [1, 2]
    assert numbers(AlertFilter(changed_since=kept[1].changed)) == [2]
    assert numbers(AlertFilter(series="' OR 1=1 --")) == []


def test_pages_show_each_alert_once_the_newest_first(alerts: Alerts) -> None:
    ids = [alerts.kept.add(alert(number), FOUND).id for number in range(7)]
    pages, after = [], ""
    while page := alerts.kept.find(after=after, limit=3):
        pages.append([one.id for one in page])
        after = page[-1].id
    assert [len(page) for page in pages] == [3, 3, 1]
    shown = [identity for page in pages for identity in page]
    assert sorted(shown) == sorted(ids)
    times = [alerts.kept.load(identity).created for identity in shown]
    assert times == sorted(times, reverse=True)
