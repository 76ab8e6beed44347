"""Boots with their values, and the levels of commits with intervals."""

from __future__ import annotations

import dataclasses
from statistics import fmean

import pytest
from scipy import stats

from bisector.report.html.measured_boots import levels, measured_boots
from bisector.report.trials import scales
from tests.support.report_material import demo, sixty_boots


def test_testbeds_get_one_level_at_the_older_end() -> None:
    material = sixty_boots()
    found = scales(material)
    assert found["machine-b"] / found["machine-a"] == pytest.approx(100 / 60, rel=0.02)
    ends = [b for b in measured_boots(material) if b.commit == material.graph.good]
    by_bed = {bed: fmean(fmean(b.samples) for b in ends if b.trial.booted.testbed == bed) for bed in found}
    assert by_bed["machine-a"] == pytest.approx(by_bed["machine-b"])


def test_one_testbed_is_not_scaled() -> None:
    assert set(scales(demo()).values()) == {1.0}


def test_what_does_not_count_is_kept_apart() -> None:
    boots = measured_boots(sixty_boots())
    assert len(boots) == 60 and all(len(b.warmups) == 1 for b in boots)
    assert sum(len(b.flagged) for b in boots) == 1
    assert [b.counts for b in measured_boots(demo())] == [True, True, False, True, True, True]


def test_intervals_are_those_of_a_one_way_analysis_of_variance() -> None:
    boots = measured_boots(sixty_boots())
    groups: dict[int, list[float]] = {}
    for boot in boots:
        groups.setdefault(boot.commit, []).append(fmean(boot.samples))
    squares = sum((m - fmean(g)) ** 2 for g in groups.values() for m in g)
    freedom = len(boots) - len(groups)
    found = levels(boots, 0.05)
    assert [one.commit for one in found] == sorted(groups)
    for one in found:
        mean, error = fmean(groups[one.commit]), (squares / freedom / len(groups[one.commit])) ** 0.5
        low, high = stats.t.interval(0.95, freedom, mean, error)
        assert one.interval is not None
        assert (one.interval.low, one.interval.high) == pytest.approx((low, high))


def test_without_a_second_boot_of_any_commit_there_is_no_interval() -> None:
    one = {b.commit: b for b in measured_boots(sixty_boots())}
    assert all(level.interval is None for level in levels(one.values(), 0.05))


def test_discarded_boots_are_no_part_of_a_level() -> None:
    material = demo()
    assert [one.commit for one in levels(measured_boots(material), 0.05)] == [0, 2, 3, 4]
    alone = dataclasses.replace(material, records=material.records[:2])
    assert levels(measured_boots(alone), 0.05) == []


def test_a_boot_that_failed_or_has_no_sample_does_not_count() -> None:
    first, *_ = measured_boots(demo())
    assert first.counts and not dataclasses.replace(first, samples=()).counts
    visit = dataclasses.replace(first.trial.visit, failure="the workload failed", failed=True)
    assert not dataclasses.replace(first, trial=dataclasses.replace(first.trial, visit=visit)).counts


def test_a_level_says_of_how_many_boots_and_runs_it_is() -> None:
    found = {one.commit: (one.boots, one.samples) for one in levels(measured_boots(demo()), 0.05)}
    assert found == {0: (1, 2), 2: (1, 2), 3: (2, 4), 4: (1, 2)}


def test_levels_are_of_samples_without_what_their_repetition_explains() -> None:
    boots = [dataclasses.replace(one, levelled=(1.0,)) for one in measured_boots(demo())]
    assert {one.mean for one in levels(boots, 0.05)} == {1.0}
