"""The nights of a series: when they begin, what they measure, and what may be in the way."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bisector.adapters.git.branch_tips import BranchTips
from bisector.adapters.git.repository import Repository
from bisector.adapters.store.series.sql_series import SqlSeries
from bisector.app.alerts.alert_context import alert_context
from bisector.app.find_culprit import others
from bisector.app.series import accept_night, night_chore
from bisector.app.series.accept_night import store_once
from bisector.app.series.follow_night import AlertSink
from bisector.app.series.manage_series import backfill
from bisector.app.series.night_chore import NightChore
from bisector.app.series.night_times import times_after
from bisector.app.series.series_store import hour_caps
from bisector.app.series.show_series import list_series
from bisector.app.testbeds import testbed_hosts
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, Interrupted, NoKernel, RequestError
from bisector.model.leases import TestbedState
from bisector.model.series import Night, Series, owner_of
from bisector.model.stored_bisection import PRIORITIES, Stored
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import read_accepted
from tests.support.series.series_lab import DAY, SeriesLab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    return SeriesLab(tmp_path, monkeypatch)


def states(lab: SeriesLab) -> list[str]:
    return [night.state for night in lab.nights()]


def test_a_night_is_fetched_measured_and_kept(lab: SeriesLab) -> None:
    lab.add()
    lab.work()
    assert lab.nights() == []  # nothing is due yet
    night = lab.night("c1")
    assert (night.number, night.state, night.commit) == (1, "measured", lab.origin.ids["c1"])
    assert night.verdict is not None
    assert night.verdict.status == "learning"
    points = lab.store.points("pipe")
    assert sorted((p.reference, p.commit, len(p.values)) for p in points) == [
        *[(False, lab.origin.ids["c1"], 3)] * 4,
        (True, lab.origin.ids["c0"], 3),
    ]
    stored = lab.wiring.store.load(night.bisection)
    assert (stored.owner, stored.priority) == (owner_of("pipe"), PRIORITIES["low"])
    assert read_accepted(stored.request).request.max_hours == 10.0


def test_a_night_asks_for_what_its_series_says(lab: SeriesLab) -> None:
    """With the threshold of the workload, or with another recipe, nights would be judged as nobody asked."""
    lab.wiring = Wiring(lab.wiring.settings.model_copy(update={"alpha": 0.01}))
    lab.chore = lab.another_chore()
    series = lab.add(threshold="7%", recipe="arm64-small", testbed="rack", workload="fork", boots=6)
    lab.push("c1")
    lab.now += DAY
    lab.chore.do()
    (stored,) = lab.wiring.store.list()
    accepted = read_accepted(lab.wiring.store.load(stored.id).request)
    request = accepted.request
    assert (request.good, request.bad) == (series.reference, lab.origin.ids["c1"])
    assert (request.threshold, request.alpha, request.recipe) == ("7%", 0.01, "arm64-small")
    assert (request.testbeds, request.workload, request.repo) == (("rack",), "fork", series.repo)
    assert accepted.night is not None and (accepted.night.kind, accepted.night.boots) == ("night", 6)


def test_a_night_at_the_reference_itself_measures_both(lab: SeriesLab) -> None:
    lab.add()
    lab.night()
    assert [p.reference for p in lab.store.points("pipe")].count(True) == 1
    assert len(lab.store.points("pipe")) == 5


def test_a_branch_without_commits_is_measured_all_the_same(lab: SeriesLab) -> None:
    lab.add()
    nights = [lab.night(name) for name in ("c1", "c2", None, None, "c3")]
    assert [night.note for night in nights] == ["", "", "no new commit", "no new commit", ""]
    assert states(lab) == ["measured"] * 5


def test_a_force_push_is_followed_and_told(lab: SeriesLab) -> None:
    lab.add()
    lab.night("c2")
    night = lab.night("other")
    assert (night.state, night.commit) == ("measured", lab.origin.ids["other"])
    assert night.note == f"the branch was force-pushed: {lab.origin.ids['c2'][:12]} is not in it any more"


def test_tags_that_do_not_contain_each_other_are_no_force_push(lab: SeriesLab) -> None:
    lab.origin.git("tag", "v1", "c2")
    lab.add(branch="v*")
    assert lab.night().commit == lab.origin.ids["c2"]
    lab.origin.git("tag", "v2", "other")
    night = lab.night()
    assert (night.commit, night.note) == (lab.origin.ids["other"], "")


def test_of_several_workers_one_makes_each_night(lab: SeriesLab) -> None:
    lab.add()
    lab.now += DAY
    chores = [lab.another_chore() for _ in range(4)]
    for _ in range(3):
        threads = [threading.Thread(target=chore.do) for chore in chores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lab.execute()
    assert states(lab) == ["measured"]
    assert len(lab.wiring.store.list()) == 1
    assert len(lab.store.points("pipe")) == 5


def test_a_worker_that_is_killed_in_between_leaves_nothing_twice_or_undone(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write of the store is the last thing that a process does; the next one goes on."""
    lab.add()
    lab.now += DAY
    for name in ("add_night", "set_commit", "change_night", "end_night", "set_verdict"):
        write = getattr(type(lab.store), name)

        def die_before(*_: object) -> None:
            raise KeyboardInterrupt

        def die_after(*given: object, write: Callable[..., object] = write) -> None:
            write(*given)
            raise KeyboardInterrupt

        for die in (die_before, die_after):
            with monkeypatch.context() as killed:
                killed.setattr(type(lab.store), name, die)
                with pytest.raises(KeyboardInterrupt):
                    for _ in range(3):
                        lab.another_chore().do()
                        lab.execute()
    lab.work()
    assert states(lab) == ["measured"]
    assert (len(lab.wiring.store.list()), len(lab.store.points("pipe"))) == (1, 5)


def test_a_night_is_not_made_twice_where_the_branch_moves_after_a_kill(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.push("c1")
    lab.now += DAY

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(type(lab.store), "change_night", die)
        with pytest.raises(KeyboardInterrupt):
            lab.chore.do()
    lab.push("c2")
    lab.chore = lab.another_chore()
    lab.work()
    (night,) = lab.nights()
    assert (night.state, night.commit) == ("measured", lab.origin.ids["c1"])
    assert [one.id for one in lab.wiring.store.list()] == [night.bisection]


def test_of_two_commits_that_workers_fetch_for_a_night_one_is_measured(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.push("c1")
    lab.now += DAY
    set_commit = type(lab.store).set_commit

    first = [True]

    def come_first(store: SqlSeries, night: Night) -> bool:
        if first:
            first.clear()
            lab.push("c2")
            lab.another_chore().do()
        return set_commit(store, night)

    monkeypatch.setattr(type(lab.store), "set_commit", come_first)
    lab.chore.do()
    lab.work()
    (night,) = lab.nights()
    assert (night.state, night.commit) == ("measured", lab.origin.ids["c2"])
    assert [one.id for one in lab.wiring.store.list()] == [night.bisection]


def test_a_night_that_ended_while_it_was_begun_leaves_no_bisection_behind(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.now += DAY

    def remove_then_store(wiring: Wiring, stored: Stored) -> None:
        lab.store.remove("pipe")
        store_once(wiring, stored)

    monkeypatch.setattr(night_chore, "store_once", remove_then_store)
    lab.chore.do()
    (left,) = lab.wiring.store.list()
    assert left.status == "cancelled"


def test_a_night_that_another_worker_began_with_the_same_bisection_goes_on(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.now += DAY

    def come_second(wiring: Wiring, stored: Stored) -> None:
        monkeypatch.setattr(night_chore, "store_once", store_once)
        lab.another_chore().do()
        store_once(wiring, stored)

    monkeypatch.setattr(night_chore, "store_once", come_second)
    lab.chore.do()
    (night,) = lab.nights()
    assert night.state == "running"
    assert [(one.id, one.status) for one in lab.wiring.store.list()] == [(night.bisection, "queued")]


@pytest.mark.parametrize("named", [True, False])
def test_only_the_host_that_has_the_testbed_begins_its_nights(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setattr(Wiring, "shared_coordinator", property(lambda wiring: wiring.coordinator))
    bed = {"perfbisect_kind": "libvirt", "perfbisect_worker": "rack1" if named else ""}
    lab.wiring.lab = lab_from_inventory(
        {"_meta": {"hostvars": {"bed": bed}}, "testbeds": {"hosts": ["bed"]}}, Path("lab.yml")
    )
    if not named:
        lab.wiring.coordinator.bind_testbed("bed", "host of rack1", move=False)
    lab.add()

    def tick(worker: str) -> list[str]:
        monkeypatch.setattr(testbed_hosts, "this_host", lambda: f"host of {worker}")
        NightChore(lab.wiring, lab.alerts, worker).do()
        return states(lab)

    lab.now += DAY
    assert tick("rack2") == ["due"]
    assert tick("rack1") == ["running"]
    lab.execute()
    assert tick("rack2") == ["measured"]
    lab.now += DAY
    assert tick("rack2") == ["measured", "due"]
    lab.now += DAY + 1
    assert tick("rack2") == ["measured", "missed", "missed"]
    assert lab.nights()[1].why == "no worker that has the testbed 'bed' began it within a day"
    lab.wiring.lab = lab_from_inventory({"testbeds": {"hosts": ["another"]}}, Path("lab.yml"))
    lab.now += DAY
    assert tick("rack1")[-1] == "due", "its inventory has no such testbed"


def test_the_chore_knows_the_name_of_its_worker(lab: SeriesLab, monkeypatch: pytest.MonkeyPatch) -> None:
    class Named(NightChore):
        def __init__(self, wiring: Wiring, alerts: AlertSink, worker: str = "") -> None:
            super().__init__(wiring, alerts, worker)
            names.append(worker)

    names: list[str] = []
    monkeypatch.setattr(night_chore, "NightChore", Named)
    others(lab.wiring, worker="rack1")
    assert names == ["rack1"]


def test_what_this_host_lacks_is_tried_again_and_told_for_a_day(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.now += DAY
    with monkeypatch.context() as lacking:
        lacking.setattr(accept_night, "accept_ends", refuse_with(RequestError("there is no workload 'x'")))
        with pytest.raises(InfrastructureError, match="night 1: there is no workload 'x'"):
            lab.chore.do()
        assert states(lab) == ["due"]
    lab.chore = lab.another_chore()
    lab.work()
    assert states(lab) == ["measured"]
    lab.now += DAY
    monkeypatch.setattr(accept_night, "accept_ends", refuse_with(RequestError("there is no workload 'x'")))
    with pytest.raises(InfrastructureError):
        lab.chore.do()
    lab.now += DAY + 1
    lab.another_chore().do()
    night = lab.nights()[1]
    assert (night.state, night.why) == ("missed", "there is no workload 'x'")
    assert night.commit != ""


def test_a_commit_without_a_kernel_fails_its_night_at_once(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.now += DAY
    monkeypatch.setattr(accept_night, "accept_ends", refuse_with(NoKernel("no Linux")))
    lab.chore.do()
    assert [(n.state, n.why) for n in lab.nights()] == [("failed", "no Linux")]


def refuse_with(error: RequestError) -> Callable[..., object]:
    def refuse(*_: object) -> object:
        raise error

    return refuse


def test_a_commit_that_this_clone_lacks_is_fetched_or_told(lab: SeriesLab) -> None:
    series = lab.add()
    lab.night("c1")
    person = ("-c", "user.name=ann", "-c", "user.email=ann@host")
    new = lab.origin.git(*person, "commit-tree", "-p", "night", "-m", "new", "night^{tree}").strip()
    lab.push(new)
    gone = "d" * 40  # of no remote
    for number, sha in ((2, new), (3, gone)):
        filled = Night(series.name, number, lab.now, 0.1 * number, kind="backfill", commit=sha)
        lab.store.add_night(filled)
    lab.chore.do()
    assert {n.number: n.state for n in lab.nights()} == {1: "measured", 2: "running", 3: "due"}
    lab.store.change_night(replace(lab.nights()[0], state="failed"), "running")
    with pytest.raises(InfrastructureError, match="has no commit dddddddddddd"):
        lab.chore.do()


def test_back_filled_nights_that_wait_cost_nothing(lab: SeriesLab, monkeypatch: pytest.MonkeyPatch) -> None:
    series = lab.add()
    lab.night("c5")
    read: list[str] = []
    nights = type(lab.store).nights

    def read_nights(store: SqlSeries, name: str) -> Sequence[Night]:
        read.append(name)
        return nights(store, name)

    monkeypatch.setattr(type(lab.store), "nights", read_nights)
    for number in range(2, 32):
        filled = Night(
            series.name, number, lab.now, number / 100, kind="backfill", commit=lab.origin.ids["c1"]
        )
        lab.store.add_night(filled)
    lab.chore.do()  # the first one begins
    read.clear()
    lab.chore.do()
    assert read == ["pipe"]


def test_a_night_that_is_due_while_the_last_one_runs_is_missed(lab: SeriesLab) -> None:
    lab.add()
    lab.now += DAY
    lab.chore.do()
    assert states(lab) == ["running"]
    lab.now += DAY
    lab.chore.do()
    assert [(n.state, n.why) for n in lab.nights()] == [
        ("running", ""),
        ("missed", "the night before had not ended"),
    ]
    lab.work()
    assert lab.night().state == "measured"


def test_missed_nights_are_not_made_up_for_but_a_late_one_is(lab: SeriesLab) -> None:
    lab.add()
    lab.now += 7 * DAY
    lab.work()
    missed, late = lab.nights()
    assert (missed.state, late.state) == ("missed", "measured")
    assert missed.why == "nobody executed it: 6 nights until then were missed"
    assert lab.now - late.scheduled <= DAY


@pytest.mark.parametrize(("late", "state"), [(0.9 * DAY, "running"), (1.1 * DAY, "missed")])
def test_a_night_that_comes_once_a_week_begins_a_day_late_at_most(
    lab: SeriesLab, late: float, state: str
) -> None:
    created = lab.add(cron="0 12 * * 0").created
    _, second = itertools.islice(times_after("0 12 * * 0", "UTC", created), 2)
    lab.now = second + late
    for _ in range(2):  # a second worker sees the same
        lab.another_chore().do()
    assert states(lab) == (["missed", "running"] if state == "running" else ["missed"])
    assert lab.nights()[-1].scheduled == second
    missed = lab.nights()[0].why
    assert (
        missed
        == f"nobody executed it: {'1 night' if state == 'running' else '2 nights'} until then were missed"
    )


def test_a_night_is_due_though_older_commits_are_asked_for_before_anybody_looks(lab: SeriesLab) -> None:
    lab.add()
    lab.night("c5")
    lab.now += DAY
    (older,) = backfill(lab.wiring, "pipe", "c3", 1)
    lab.chore.do()
    assert [(night.kind, night.state) for night in lab.nights()] == [
        ("backfill", "due"),
        ("night", "measured"),
        ("night", "running"),
    ]
    assert older.scheduled > lab.nights()[-1].scheduled
    lab.work()
    assert states(lab) == ["measured"] * 3


def test_an_older_commit_under_way_is_collected_though_still_older_ones_wait(lab: SeriesLab) -> None:
    lab.add()
    lab.night("c5")
    backfill(lab.wiring, "pipe", "c3", 1)
    lab.chore.do()
    lab.execute()
    backfill(lab.wiring, "pipe", "c1", 1)
    lab.chore.do()
    assert {lab.origin.name(night.commit): night.state for night in lab.nights()}["c4"] == "measured"
    lab.work()
    assert states(lab) == ["measured"] * 4


def test_an_older_commit_waits_for_its_server_and_for_the_budget(lab: SeriesLab) -> None:
    """It has no time of its own that it could miss."""
    lab.add()
    lab.night("c5")
    older = Night("pipe", 2, lab.now, lab.now - DAY, kind="backfill", commit="d" * 40)
    lab.store.add_night(older)
    lab.now += 1.5 * DAY
    lab.chore.do()  # a night comes first
    lab.execute()
    lab.chore.do()
    with pytest.raises(InfrastructureError, match=r"night 2: the repository .* has no commit dddddddddddd"):
        lab.chore.do()
    assert lab.nights()[0] == older
    lab.wiring.coordinator.add_machine_time(owner_of("pipe"), 11 * 3600)
    lab.another_chore().do()
    assert lab.nights()[0] == older


def test_a_night_whose_number_is_taken_is_added_at_the_next_look(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody back-fills between the look at what is there and the new night."""
    lab.add()
    filled = Night("pipe", 1, lab.now, lab.now - DAY, kind="backfill", commit=lab.origin.ids["c1"])
    nights, waiting = SqlSeries.nights, [filled]

    def then_back_fill(self: SqlSeries, name: str) -> Sequence[Night]:
        found = nights(self, name)
        if waiting:
            lab.store.add_night(waiting.pop())
        return found

    monkeypatch.setattr(SqlSeries, "nights", then_back_fill)
    lab.now += DAY
    for _ in range(2):
        lab.chore.do()
    assert [(night.number, night.state) for night in lab.nights() if night.kind == "night"] == [
        (2, "running")
    ]


@pytest.mark.parametrize("days", [1, 3])
def test_a_night_that_could_not_be_written_is_added_at_the_next_look(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """It was thought to be there until the next one was due, and was missed then."""
    lab.add()
    lab.now += days * DAY

    def is_full(*_: object) -> None:
        raise InfrastructureError("no space left on device")

    with monkeypatch.context() as full, pytest.raises(InfrastructureError, match="no space"):
        full.setattr(SqlSeries, "add_night", is_full)
        lab.chore.do()
    lab.chore.do()
    assert states(lab) == ["missed"] * (days > 1) + ["running"]


def test_a_server_that_is_away_is_told_and_the_night_waits_a_day_at_most(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.origin.path.rename(lab.origin.path.with_name("away"))
    lab.now += DAY
    asked, fetch = [0], BranchTips.fetch

    def counted(tips: BranchTips) -> None:
        asked[0] += 1
        fetch(tips)

    monkeypatch.setattr(BranchTips, "fetch", counted)
    for again in (False, True):  # the second one within the pause between two fetches
        with pytest.raises(
            InfrastructureError, match="series 'pipe', night 1: 'origin/night' cannot be fetched"
        ) as caught:
            lab.chore.do()
        assert again or "does not appear to be a git repository" in str(caught.value)
    assert states(lab) == ["due"]
    assert asked == [1], "a server is not asked every five seconds"
    lab.origin.path.with_name("away").rename(lab.origin.path)
    with monkeypatch.context() as later:
        later.setattr(night_chore, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
        lab.work()
    assert states(lab) == ["measured"]
    lab.repo.rename(lab.repo.with_name("gone"))
    lab.now += DAY
    with pytest.raises(InfrastructureError, match="there is no folder"):
        lab.chore.do()
    lab.now += DAY
    lab.another_chore().do()
    assert [(n.state, n.why[:20]) for n in lab.nights()[1:]] == [
        ("missed", "there is no folder /"),
        ("missed", "the night before had"),
    ]


@pytest.mark.parametrize("late", [0, DAY + 1])
def test_a_worker_that_is_told_to_end_says_nothing_of_a_night(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    def end(*_: object) -> Stored:
        raise Interrupted("told to end")

    lab.add()
    lab.now += DAY
    with monkeypatch.context() as patched:
        patched.setattr(night_chore, "night_bisection", end)
        with pytest.raises(Interrupted):
            lab.chore.do()
        lab.now += late
        with pytest.raises(Interrupted):
            lab.chore.do()
    assert lab.nights()[0].state == "due"


def test_a_tip_that_does_not_build_fails_its_night_alone(lab: SeriesLab) -> None:
    lab.add()
    lab.unbuildable = [1]
    night = lab.night("c1")
    assert (night.state, night.verdict) == ("failed", None)
    assert "does not build" in night.why
    lab.unbuildable = [0]
    night = lab.night("c2")
    assert night.state == "measured"
    assert "The reference was not measured" in night.note


@pytest.mark.parametrize(
    ("how", "why"),
    [("cancelled", "its bisection was cancelled"), ("failed", "failed: see 'perfbisect status")],
)
def test_a_bisection_that_ends_otherwise_fails_its_night(lab: SeriesLab, how: str, why: str) -> None:
    lab.add()
    lab.now += DAY
    lab.chore.do()
    (night,) = lab.nights()
    lab.wiring.store.set_status(night.bisection, how)
    lab.chore.do()
    assert lab.nights()[0].state == "failed"
    assert why in lab.nights()[0].why
    lab.now += DAY
    lab.chore.do()
    lab.wiring.store.remove(lab.nights()[-1].bisection)
    lab.chore.do()
    assert lab.nights()[-1].why.endswith("was removed")


@pytest.mark.parametrize("state", ["retired", "maintenance"])
def test_a_retired_testbed_lets_nights_be_missed_and_one_in_maintenance_lets_them_wait(
    lab: SeriesLab, state: TestbedState
) -> None:
    lab.add()
    lab.wiring.coordinator.set_testbed("attic", "retired", "nobody has it", "ann")
    lab.wiring.coordinator.set_testbed("bed", state, "fans are broken", "ann")
    lab.now += DAY
    lab.chore.do()
    (night,) = lab.nights()
    if state == "retired":
        assert (night.state, night.why) == ("missed", "the testbed 'bed' is retired: fans are broken")
    else:
        assert night.state == "running"


def test_a_budget_that_is_used_lets_nights_be_missed(lab: SeriesLab) -> None:
    lab.add(budget=2.0)
    lab.wiring.coordinator.add_machine_time(owner_of("pipe"), 2.5 * 3600)
    night = lab.night()
    assert (night.state, night.why) == ("missed", "the budget is used: 2.5 of 2 machine hours in seven days")


@pytest.mark.parametrize(("cap", "allowed"), [(2.0, 2.0), (20.0, 10.0)])
def test_of_a_budget_and_the_labs_cap_the_smaller_holds(lab: SeriesLab, cap: float, allowed: float) -> None:
    series = lab.add(budget=10.0)
    owner = owner_of("pipe")
    settings = lab.wiring.settings.model_copy(update={"caps": {owner: cap, "nightly": 1.0}})
    lab.wiring = Wiring(settings)
    assert hour_caps(lab.wiring) == {owner: allowed, "nightly": 1.0}
    assert alert_context(lab.wiring).hours(series) == allowed
    lab.chore = lab.another_chore()
    lab.wiring.coordinator.add_machine_time(owner, 2.5 * 3600)
    night = lab.night()
    if allowed > 2.5:
        assert night.state == "measured"
    else:
        why = "the lab's cap of the series is used: 2.5 of 2 machine hours in seven days"
        assert (night.state, night.why) == ("missed", why)


def test_a_paused_series_rests(lab: SeriesLab) -> None:
    lab.add()
    lab.store.set_state("pipe", "paused", "holidays")
    lab.now += 3 * DAY
    lab.work()
    assert lab.nights() == []


def test_a_paused_series_begins_no_older_commit_either(lab: SeriesLab) -> None:
    series = lab.add()
    lab.night("c2")
    older = Night("pipe", 2, lab.now, lab.now - DAY, kind="backfill", commit=lab.origin.ids["c1"])
    assert lab.store.add_night(older)
    lab.store.set_state(series.name, "paused", "for a while")
    lab.chore.do()
    assert [night.state for night in lab.nights() if night.kind == "backfill"] == ["due"]
    lab.store.set_state(series.name, "active")
    lab.chore.do()
    assert [night.state for night in lab.nights() if night.kind == "backfill"] == ["running"]


def test_a_series_that_is_removed_meanwhile_is_forgotten(lab: SeriesLab) -> None:
    lab.add()
    lab.now += DAY
    lab.chore.do()
    lab.store.remove("pipe")
    lab.chore.do()
    lab.execute()
    (old,) = lab.wiring.store.list()
    lab.add()
    lab.work()
    (night,) = lab.nights()
    assert night.state == "measured"
    assert night.bisection != old.id  # of the same commit and number


def test_a_night_of_a_series_that_is_not_known_yet_waits_for_the_next_look(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add()
    lab.now += DAY
    assert lab.store.add_night(Night("pipe", 1, lab.now, lab.now))
    with monkeypatch.context() as before_it_was_added:
        before_it_was_added.setattr(SqlSeries, "all", lambda _: [])
        lab.chore.do()
    assert states(lab) == ["due"]
    lab.chore.do()
    assert states(lab) == ["running"]


def test_one_series_that_cannot_go_on_holds_up_no_other(lab: SeriesLab) -> None:
    lab.add()
    for name in ("broken", "lost"):
        lab.store.add(replace(lab.store.load("pipe"), name=name, repo="/nowhere"))
    lab.now += DAY
    with pytest.raises(
        InfrastructureError, match=r"series 'broken', night 1: [^\n]+\nseries 'lost', night 1"
    ):
        lab.chore.do()
    assert states(lab) == ["running"]


@pytest.mark.parametrize("error", [KeyError("pipe"), IndexError("list index out of range")])
def test_a_defect_that_one_night_meets_is_told_and_holds_up_no_other(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    lab.add()
    lab.store.add(replace(lab.store.load("pipe"), name="broken"))
    begin = NightChore._begin

    def meets_a_defect(self: NightChore, series: Series, night: Night, now: float) -> None:
        if series.name == "broken":
            raise error
        begin(self, series, night, now)

    monkeypatch.setattr(NightChore, "_begin", meets_a_defect)
    lab.now += DAY
    with pytest.raises(InfrastructureError) as caught:
        lab.chore.do()
    assert f"series 'broken', night 1: internal error, please report it: {type(error).__name__}" in str(
        caught.value
    )
    assert "meets_a_defect" in str(caught.value)
    assert states(lab) == ["running"]


@pytest.mark.parametrize(("cron", "zone"), [("0 0 30 2 *", "UTC"), ("0 0 * * *", "Europe/Atlantis")])
def test_a_series_whose_times_this_host_cannot_read_holds_up_no_other(
    lab: SeriesLab, cron: str, zone: str
) -> None:
    """Another host, or an earlier version, could read them."""
    lab.store.add(replace(lab.add(), name="broken", cron=cron, time_zone=zone))
    lab.now += DAY
    with pytest.raises(InfrastructureError, match="series 'broken': --"):
        lab.chore.do()
    assert states(lab) == ["running"]
    assert [(row["name"], row["next"] is None) for row in list_series(lab.wiring)] == [
        ("broken", True),
        ("pipe", False),
    ]


def test_what_has_ended_is_judged_at_once(lab: SeriesLab) -> None:
    """A worker with --until-idle does its chores once more, and then ends."""
    lab.add()
    lab.now += DAY
    lab.chore.do()
    lab.execute()
    lab.chore.do()
    assert lab.nights()[0].verdict is not None


@pytest.mark.parametrize("there", [True, False])
def test_a_worker_with_a_clone_of_its_own_executes_what_another_one_fetched(
    lab: SeriesLab, tmp_path: Path, there: bool
) -> None:
    """there: whether the remote still has the commit, of a branch that was force-pushed since."""
    hosts = {"bed": {"perfbisect_kind": "local", "ansible_connection": "local"}}
    lab.wiring.lab = lab_from_inventory(
        {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": ["bed"]}}, Path("lab.yml")
    )
    lab.add()
    person = ("-c", "user.name=ann", "-c", "user.email=ann@host")
    new = lab.origin.git(*person, "commit-tree", "-p", "c1", "-m", "new", "c1^{tree}").strip()
    lab.origin.git("clone", "--quiet", "--no-local", str(lab.origin.path), str(tmp_path / "second"))
    lab.push(new)
    lab.now += DAY
    lab.chore.do()
    (night,) = lab.nights()
    assert (night.state, night.commit) == ("running", new)
    stored = lab.wiring.store.load(night.bisection)
    lab.repo.rename(tmp_path / "first")
    (tmp_path / "second").rename(lab.repo)  # from here on this is the second worker
    lab.push("other")
    if not there:
        lab.origin.git("reflog", "expire", "--expire=now", "--all")
        lab.origin.git("gc", "--quiet", "--prune=now")
    open_ = others(lab.wiring, worker="rack2").open
    if there:
        assert list(open_(stored, threading.Event()).testbeds) == ["bed"]
        assert Repository(lab.repo).resolve(new) == new
    else:
        with pytest.raises(InfrastructureError, match=f"has no commit {new[:12]}, nor has a remote"):
            open_(stored, threading.Event())
