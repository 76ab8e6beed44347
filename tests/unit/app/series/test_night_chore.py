"""The nights of a series: when they begin, what they measure, and what may be in the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.errors import InfrastructureError
from bisector.model.leases import TestbedState
from bisector.model.series import owner_of
from bisector.model.stored_bisection import PRIORITIES
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


def test_a_night_at_the_reference_itself_measures_both(lab: SeriesLab) -> None:
    lab.add()
    lab.night()
    assert [p.reference for p in lab.store.points("pipe")].count(True) == 1
    assert len(lab.store.points("pipe")) == 5


def test_a_branch_without_commits_is_measured_all_the_same(lab: SeriesLab) -> None:
    lab.add()
    nights = [lab.night(name) for name in ("c1", None, None, "c2")]
    assert [night.note for night in nights] == ["", "no new commit", "no new commit", ""]
    assert states(lab) == ["measured"] * 4


def test_a_force_push_is_followed_and_told(lab: SeriesLab) -> None:
    lab.add()
    lab.night("c2")
    night = lab.night("other")
    assert (night.state, night.commit) == ("measured", lab.origin.ids["other"])
    assert night.note == f"the branch was force-pushed: {lab.origin.ids['c2'][:12]} is not in it any more"


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
    for name in ("add_night", "change_night", "end_night", "set_verdict"):
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


def test_a_night_that_is_due_while_the_last_one_runs_is_missed(lab: SeriesLab) -> None:
    lab.add()
    lab.now += DAY
    lab.chore.do()
    assert states(lab) == ["running"]
    lab.now += DAY
    lab.chore.do()
    assert [(n.state, n.why) for n in lab.nights()] == [
        ("running", ""),
        ("missed", "the night before still ran"),
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


def test_a_server_that_is_away_is_told_and_the_night_waits_a_day_at_most(lab: SeriesLab) -> None:
    lab.add()
    lab.origin.path.rename(lab.origin.path.with_name("away"))
    lab.now += DAY
    for _ in range(2):  # the second one within the pause between two fetches
        with pytest.raises(
            InfrastructureError, match="series 'pipe', night 1: 'origin/night' cannot be fetched"
        ):
            lab.chore.do()
    assert states(lab) == ["due"]
    lab.origin.path.with_name("away").rename(lab.origin.path)
    lab.chore = lab.another_chore()
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
        ("missed", "the night before sti"),
    ]


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


def test_a_paused_series_rests(lab: SeriesLab) -> None:
    lab.add()
    lab.store.set_state("pipe", "paused", "holidays")
    lab.now += 3 * DAY
    lab.work()
    assert lab.nights() == []


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


def test_one_series_that_cannot_go_on_holds_up_no_other(lab: SeriesLab) -> None:
    lab.add()
    lab.store.add(replace(lab.store.load("pipe"), name="broken", repo="/nowhere"))
    lab.now += DAY
    with pytest.raises(InfrastructureError, match="series 'broken'"):
        lab.chore.do()
    assert states(lab) == ["running"]


def test_what_has_ended_is_judged_at_once(lab: SeriesLab) -> None:
    """A worker with --until-idle does its chores once more, and then ends."""
    lab.add()
    lab.now += DAY
    lab.chore.do()
    lab.execute()
    lab.chore.do()
    assert lab.nights()[0].verdict is not None
