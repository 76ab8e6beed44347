"""What the repetitions of a boot differ by: repetition k is compared with repetition k."""

from __future__ import annotations

import dataclasses
import math
from statistics import fmean

import pytest

from bisector.report import pictures, stored_samples, text, trials
from bisector.report.html import chart_sections
from bisector.report.html.measured_boots import levels, measured_boots
from bisector.report.repetition_pattern import NO_PATTERN, find
from tests.support.report_material import METRIC, demo, uneven_runs


def test_a_step_is_the_median_ratio_to_the_repetition_that_most_boots_have() -> None:
    found = find([[(1, 110.0), (2, 100.0)], [(1, 220.0), (2, 202.0)], [(1, 330.0), (2, 270.0)], [(1, 5.0)]])
    assert (found.reference, found.ratios, found.words) == (1, True, " as of run 1")
    assert found.steps == pytest.approx({1: 1.0, 2: 100 / 110})
    assert found.level(2, 50.0) == pytest.approx(55.0)
    assert found.level(7, 50.0) == 50.0, "no boot has it beside run 1"


def test_runs_of_equal_boots_have_equal_levels() -> None:
    """The last digits of a double made them differ, and a test then called that certain."""
    boots = [[(1, 0.11), (2, 0.07), (3, 0.23)], [(1, 0.11), (2, 0.07)], [(1, 0.11)], [(1, 1 / 3)]]
    found = find(boots)
    assert {found.level(k, value) for boot in boots[:3] for k, value in boot} == {0.11}
    assert found.level(1, 1 / 3) == 0.333333333333


def test_what_is_not_positive_is_compared_by_differences() -> None:
    found = find([[(1, 3.0), (2, 0.0)], [(1, 4.0), (2, 1.0)], [(1, 9.0)]])
    assert not found.ratios
    assert found.level(2, 1.0) == 4.0


def test_means_of_the_same_repetitions_compare_as_they_are() -> None:
    assert find([]) == find([[(1, 2.0)], [(1, 3.0)]]) == NO_PATTERN
    assert find([[(1, 2.0), (2, 1.0)], [(2, 3.0), (1, 3.0)], []]) == NO_PATTERN
    assert find([[(1, 2.0), (2, math.nan)], [(1, 3.0)]]) == NO_PATTERN
    assert demo().pattern == NO_PATTERN


def test_a_boot_lies_where_it_is_however_often_it_ran() -> None:
    """Equal kernels were '+1.59% slower than good: bad's side, 259% of the way': one run against three."""
    material = uneven_runs()
    said = [trials.verdict(material, trial) for trial in material.trials]
    same, slower = "0.00% the same as good: good's side, 0% of the way", "+0.03% slower than good"
    assert said == [
        "the good end",
        f"{slower}: the bad end",
        same,
        f"{slower}: bad's side, 100% of the way",
        same,
        f"{slower}: bad's side, 100% of the way",
    ]
    by_wall = dataclasses.replace(material, goal=dataclasses.replace(material.goal, clock="wall"))
    assert trials.verdict(by_wall, by_wall.trials[2]).startswith("+1.64% slower"), "its runs differ by chance"


def test_every_form_has_the_same_levels() -> None:
    material = uneven_runs()
    before, after = 103.0, 103.0309
    assert trials.levels(material, (2, 3)) == pytest.approx((before, after))
    assert "103.00 -> 103.03 s  (mean as of run 1, parent -> culprit)" in text.render(material)
    boots = measured_boots(material)
    found = {one.commit: one.mean for one in levels(boots, 0.05)}
    assert found == pytest.approx({0: before, 2: before, 3: after, 4: after})
    table = chart_sections.levels(material, boots)
    assert table is not None and table["levelled"] == " as of run 1"
    compared = chart_sections.before_after(material, boots)
    assert compared is not None and compared["change"] == "+0.03% slower"
    assert any("103.00  3 runs" in line for line in pictures.strip(material, 100))


def test_samples_of_commits_are_compared_likewise_in_each_metric() -> None:
    for name in ("real", "another"):
        material = uneven_runs(name)
        for commit, level in ((0, 103.0), (3, 103.0309)):
            (found,) = stored_samples.sets(material, commit, "it", {"real": METRIC})
            values = [value for boot in found.series[name].boots for value in boot]
            assert values == pytest.approx([level] * len(values)), name
            told = "boots ran differently often: numbers are as of run 1, not as read"
            assert found.notes == (told,), "'--format runs' called them every run"
    by_wall = dataclasses.replace(material, goal=dataclasses.replace(material.goal, clock="wall"))
    (found,) = stored_samples.sets(by_wall, 0, "it", {})
    assert found.notes == ()
    assert fmean(found.series["another"].boots[0]) == pytest.approx(100 * fmean((1.03, 1.01, 1.0)))
