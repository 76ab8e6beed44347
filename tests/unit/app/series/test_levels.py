"""Points of a series as levels of nights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bisector.app.series.levels import effect_unit, level_of, noise_of_nights, verdicts
from bisector.model.goal import Metric, Threshold
from bisector.model.series import Night, Point

RELATIVE = Metric("real", "s", "lower", Threshold(0.01))


def point(night: int, boot: int, *values: float, reference: bool = False) -> Point:
    return Point(night, f"boot-{boot}", f"{night:040x}", "bed", reference, values, 1.0)


def series(step: float, base: float = 100.0, scale: float = 1.0) -> tuple[list[Night], list[Point]]:
    """Return 30 nights of two boots with a step in night 26, relative to `scale`."""
    random = np.random.default_rng(3)
    nights, points = [], []
    for number in range(1, 31):
        nights.append(Night("s", number, float(number), float(number), state="measured"))
        for boot in range(2):
            level = base + scale * (step * (number >= 26) + 0.004 * random.standard_normal())
            points.append(point(number, boot, level, level))
    return nights, points


def test_one_run_that_was_disturbed_does_not_move_the_level_of_its_boot() -> None:
    assert level_of(point(1, 0, 100.0, 101.0, 900.0)) == 101.0


def test_changes_are_parts_of_the_level_where_the_threshold_is() -> None:
    assert effect_unit(RELATIVE) == ""
    assert effect_unit(Metric("real", "s", "lower", Threshold(1.0, relative=False))) == "s"


def test_a_large_threshold_and_a_large_change_are_parts_of_the_level_not_logarithms() -> None:
    nights, points = series(0.47, 100.0, 100.0)  # ln 1.47 is 0.385
    last = verdicts(nights, points, Metric("real", "s", "lower", Threshold(0.4)))[30]
    assert last.status == "suspect" and last.effect is not None
    assert last.effect.estimate == pytest.approx(0.47, abs=0.01)


def test_a_level_below_zero_that_rises_has_a_change_above_zero() -> None:
    nights, points = series(0.05, -100.0, 100.0)
    last = verdicts(nights, points, RELATIVE)[30]
    assert last.effect is not None and last.effect.estimate == pytest.approx(0.05, abs=0.01)
    nights, points = series(0.05, -100.0, 10.0)
    assert verdicts(nights, points, RELATIVE)[30].status == "steady", "half of the threshold of 1%"


def test_a_change_of_hundreds_of_powers_of_ten_is_told() -> None:
    nights, points = series(0.05, 100.0, 100.0)
    huge = [replace(one, values=tuple(1e-200 * v for v in one.values)) for one in points if one.night < 26]
    huge += [replace(one, values=tuple(1e200 * v for v in one.values)) for one in points if one.night >= 26]
    last = verdicts(nights, huge, RELATIVE)[30]
    assert last.status == "suspect" and last.effect is not None and last.effect.estimate > 1e20


def test_a_change_names_the_numbers_of_its_nights() -> None:
    nights, points = series(0.05, 100.0, 100.0)
    nights = [replace(one, number=one.number + 100) for one in nights]
    last = verdicts(nights, [replace(one, night=one.night + 100) for one in points], RELATIVE)[130]
    assert last.last_good is not None and last.first_bad is not None
    assert 120 < last.last_good <= 125 < 126 <= last.first_bad <= 130


def test_a_night_whose_boots_all_read_zero_is_judged() -> None:
    nights, points = series(0.05, 100.0, 100.0)
    points = [point(26, int(one.boot[5:]), 0.0, 0.0) if one.night == 26 else one for one in points]
    assert verdicts(nights, points, RELATIVE)[30].status in ("suspect", "steady")


def test_a_change_of_a_level_of_zero_is_told_in_the_metrics_unit() -> None:
    nights, points = series(0.0, 0.0, 0.0)
    points = [replace(one, values=(5.0, 5.0)) if one.night >= 26 else one for one in points]
    last = verdicts(nights, points, RELATIVE)[30]
    assert last.effect is not None and last.effect.estimate == 5.0


def test_a_night_that_measured_the_reference_alone_has_no_verdict() -> None:
    nights, points = series(0.05, 100.0, 100.0)
    points = [replace(one, reference=True) if one.night == 29 else one for one in points]
    assert set(verdicts(nights, points, RELATIVE)) == set(range(1, 31)) - {29}


@pytest.mark.parametrize(
    ("metric", "base", "scale"),
    [
        (RELATIVE, 100.0, 100.0),
        (Metric("real", "s", "lower", Threshold(1.0, relative=False)), 100.0, 100.0),
        (RELATIVE, 0.0, 100.0),  # around zero there are no logs
    ],
)
def test_a_step_is_told_in_the_unit_of_the_threshold(metric: Metric, base: float, scale: float) -> None:
    nights, points = series(0.05, base, scale)
    found = verdicts(nights, points, metric)
    assert [found[n].status for n in (10, 25)] == ["learning", "steady"]
    last = found[30]
    assert last.status == "suspect"
    assert last.last_good is not None
    assert last.first_bad is not None
    assert last.last_good <= 25 < 26 <= last.first_bad
    assert last.effect is not None
    assert found[25].night_sd is not None
    if base:  # of a level of zero there are no parts
        expected = 0.05 if metric.threshold.relative else 5.0
        assert last.effect.estimate == pytest.approx(expected, rel=0.1)
        scatter = 0.004 * scale / np.sqrt(2) / (base if metric.threshold.relative else 1.0)
        assert 0.5 < found[25].night_sd / scatter < 3  # boots of two nights scatter so, by chance


def test_a_run_that_read_zero_does_not_move_what_percentages_are_of() -> None:
    """Not the levels of another year, nor those of the reference, only the level before a change."""
    random = np.random.default_rng(0)
    nights, points = [], []
    for number, level in enumerate([1000.0] * 60 + [100.0] * 25 + [90.0] * 5, start=1):
        nights.append(Night("s", number, 1.0, float(number), state="measured", new_level=number == 61))
        for boot in range(4):
            value = (400.0 if boot == 3 else level) * float(1 + 0.01 * random.standard_normal())
            zero = 0.0 if (number, boot) == (10, 0) else value
            points.append(point(number, boot, value, value, zero, reference=boot == 3))
    last = verdicts(nights, points, Metric("iops", "1/s", "higher", Threshold(0.05)))[90]
    assert last.status == "suspect"
    assert last.effect is not None and last.reference is not None and last.night_sd is not None
    assert last.effect.estimate == pytest.approx(-0.1, abs=0.01)
    assert last.reference.low < 0 < last.reference.high < 0.05
    assert last.night_sd < 0.06


def test_nights_in_the_order_of_history_without_those_that_measured_nothing() -> None:
    nights, points = series(0.05, 100.0, 100.0)
    failed = Night("s", 31, 40.0, 27.5, state="failed")
    late = Night("s", 32, 41.0, 20.5, kind="backfill", state="measured")
    points += [point(32, boot, 100.0, 100.0) for boot in range(2)]
    found = verdicts(sorted([*nights, failed, late], key=lambda n: n.place), points, RELATIVE)
    assert 31 not in found
    assert found[32].status in ("learning", "steady")
    assert (found[30].last_good, found[30].status) in [(n, "suspect") for n in (22, 23, 24, 25)]


def test_a_new_level_is_not_compared_with_the_one_before() -> None:
    nights, points = series(0.05, 100.0, 100.0)
    nights[25] = Night("s", 26, 26.0, 26.0, state="measured", new_level=True)
    assert verdicts(nights, points, RELATIVE)[30].status == "learning"
    for more in ([], [Night("s", 31, 40.0, 10.5, state="failed")]):
        found = verdicts(sorted([*nights, *more], key=lambda n: n.place), points, RELATIVE)
        assert [found[n].status for n in (25, 26)] == ["steady", "learning"], "from just that night on"


def test_noise_is_that_within_nights() -> None:
    random = np.random.default_rng(1)
    points = []
    for night in range(40):
        for boot in range(4):
            own = (1 + night) * (1 + 0.02 * random.standard_normal())  # nights differ by much more
            points.append(point(night, boot, *(own * (1 + 0.005 * random.standard_normal(3)))))
    found = noise_of_nights(points)
    assert found is not None
    assert found.run_sd == pytest.approx(0.005, rel=0.15)
    assert found.boot_sd == pytest.approx(0.02, rel=0.25)
    assert (found.run_df, found.boot_df) == (320, 119)
    references = [point(night, 4, 3.0 * night, 5.0 * night, reference=True) for night in range(1, 40)]
    assert noise_of_nights([*points, *references]) == found
    assert [noise_of_nights(points[:boots]) is None for boots in (4, 7, 8)] == [True, True, False]
    assert noise_of_nights([]) is None


def test_noise_is_that_of_the_latest_nights_with_several_boots() -> None:
    random = np.random.default_rng(2)
    points = []
    for night in range(1, 101):
        for boot in range(3):
            own = 50.0 * (1 + (0.2 if night <= 40 else 0.01) * random.standard_normal())
            points.append(point(night, boot, *(own * (1 + 0.005 * random.standard_normal(3)))))
    found = noise_of_nights(points)
    assert found is not None
    assert found.boot_sd == pytest.approx(0.01, rel=0.25)
    alone = [point(night, 0, 50.0, 51.0) for night in range(41, 101)]
    zero = [point(70, boot, 0.0, 0.0) for boot in range(3)]
    kept = [one for one in points if one.night > 40]
    assert noise_of_nights(alone) is None, "one boot a night tells nothing of what boots differ by"
    assert noise_of_nights([one for one in kept if one.boot != "boot-2"]) is not None, "two do"
    others = [one for one in kept if one.night != 70]
    assert noise_of_nights([*others, *zero]) == noise_of_nights(others)
    negative = [replace(one, values=tuple(-value for value in one.values)) for one in kept]
    assert noise_of_nights(negative) == noise_of_nights(kept)
    once = [replace(one, values=one.values[:1]) for one in kept]
    assert noise_of_nights(once) is None, "one run a boot tells nothing of what runs differ by"
