"""What lists and pages show of a series: its last verdict, hours and metric, and the levels of its nights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.series.show_series import list_series, show_series
from bisector.model.goal import Threshold
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import Night, NightVerdict, Point, owner_of
from tests.support.series.series_lab import DAY, SeriesLab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    lab = SeriesLab(tmp_path, monkeypatch)
    lab.add()
    return lab


def keep(lab: SeriesLab, number: int, *boots: tuple[bool, tuple[float, ...]]) -> None:
    """Keep a measured night. boots: whether of the reference, and what its runs read."""
    night = Night("pipe", number, lab.now, lab.now + number, state="running", commit=lab.origin.ids["c1"])
    lab.store.add_night(night)
    points = [
        Point(number, f"n{number}-{place}", "c" * 40, "bed", reference, values, lab.now)
        for place, (reference, values) in enumerate(boots)
    ]
    lab.store.end_night(replace(night, state="measured"), points)


def test_a_level_is_the_median_of_boots_and_of_each_the_median_of_its_runs(lab: SeriesLab) -> None:
    tip = [(False, (1.0, 2.0, 9.0)), (False, (5.0,)), (False, (90.0, 70.0, 80.0))]
    reference = [(True, (7.0, 8.0, 30.0)), (True, (1.0,)), (True, (99.0,))]
    keep(lab, 1, *tip, *reference)
    keep(lab, 2, (True, (4.0,)))
    keep(lab, 3)
    nights = show_series(lab.wiring, "pipe")["nights"]
    assert [(night["level"], night["reference_level"]) for night in nights] == [
        (5, 8),
        (None, 4),
        (None, None),
    ]
    assert "series" not in nights[0]
    boots = nights[0]["boots"]
    assert [(boot["reference"], tuple(boot["values"])) for boot in boots] == [*tip, *reference]
    assert {boot["testbed"] for boot in boots} == {"bed"}


def test_the_verdict_is_the_last_one_and_hours_are_those_of_the_series(lab: SeriesLab) -> None:
    for number, status in ((1, "learning"), (2, "steady"), (3, None)):
        keep(lab, number, (False, (1.0,)))
        if status is not None:
            verdict = NightVerdict(status)  # type: ignore[arg-type]
            lab.store.set_verdict(replace(lab.nights()[-1], verdict=verdict))
    lab.wiring.coordinator.add_machine_time(owner_of("pipe"), 2.5 * HOUR_SECONDS)
    lab.wiring.coordinator.add_machine_time("ann", HOUR_SECONDS)
    (row,) = list_series(lab.wiring)
    assert (row["nights"], row["last"], row["last_state"], row["verdict"]) == (3, 3, "measured", "steady")
    assert (row["hours_used"], row["hours_allowed"]) == (2.5, 10)
    assert row["next"] is not None and lab.now < row["next"] <= lab.now + DAY
    lab.store.set_state("pipe", "paused", "holidays")
    assert list_series(lab.wiring)[0]["next"] is None


def test_a_cap_of_the_lab_holds_below_the_budget(lab: SeriesLab) -> None:
    lab.wiring.settings = lab.wiring.settings.model_copy(update={"caps": {owner_of("pipe"): 4.0}})
    (row,) = list_series(lab.wiring)
    assert (row["hours_allowed"], row["budget"]) == (4.0, 10.0)


def test_a_host_that_lacks_the_time_zone_shows_the_series_without_its_next_night(lab: SeriesLab) -> None:
    lab.add(name="far", time_zone="Mars/Base")
    rows = {row["name"]: row["next"] for row in list_series(lab.wiring)}
    assert rows["far"] is None and rows["pipe"] is not None


def test_the_metric_is_that_of_the_last_night_whose_bisection_is_there(lab: SeriesLab) -> None:
    assert show_series(lab.wiring, "pipe")["metric"] is None
    lab.night("c1")
    found = show_series(lab.wiring, "pipe")
    assert (found["unit"], found["effect_unit"]) == ("s", "")
    lab.threshold = Threshold(1.0, relative=False)  # people have changed the workload's
    lab.night("c2")
    keep(lab, 3, (False, (1.0,)))  # which has no bisection
    for number in range(4, 6):
        lab.wiring.store.remove(lab.night(f"c{number}").bisection)
    found = show_series(lab.wiring, "pipe")
    assert (found["metric"], found["unit"], found["effect_unit"]) == ("real", "s", "s")
    lab.wiring.store.remove(lab.night("c6").bisection)
    assert show_series(lab.wiring, "pipe")["metric"] is None, "three nights are asked, and no more"


def test_nights_wait_for_their_own_testbed_alone(lab: SeriesLab) -> None:
    assert show_series(lab.wiring, "pipe")["testbed_out_of_use"] is None
    lab.wiring.coordinator.reserve("bed", owner_of("pipe"), lab.now + DAY)
    assert show_series(lab.wiring, "pipe")["testbed_out_of_use"] is None
    lab.wiring.coordinator.unreserve("bed", owner_of("pipe"))
    lab.wiring.coordinator.reserve("bed", "ann", lab.now + DAY)
    assert "ann" in show_series(lab.wiring, "pipe")["testbed_out_of_use"]
    lab.wiring.coordinator.set_testbed("other", "suspect", "its level moved", "a health check")
    assert "moved" not in show_series(lab.wiring, "pipe")["testbed_out_of_use"]
