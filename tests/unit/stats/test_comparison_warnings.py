"""What a comparison warns of: few data, outliers, two groups, odd values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bisector.stats.comparison import compare
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSeries
from tests.support.samples import boots, normal, sample_set, series


def test_groups_are_said_in_words() -> None:
    a, b = sample_set("a", real=normal(12, 1)), sample_set("b", real=normal(6, 2) + normal(6, 3, level=130.0))
    (text,) = [w for w in build([[a], [b]]).warnings if "two groups" in w]
    assert text.startswith("real: b: the runs fall into two groups, 6 near ")


def test_outliers_hide_no_modes_and_are_none_themselves() -> None:
    split = normal(8, 2) + normal(8, 3, level=130.0)
    far = compare("m", series([normal(12, 1)]), series([(*split, 900.0)])).warnings
    assert any("two groups" in w for w in far)
    alone = compare("m", series([normal(12, 1)]), series([(*normal(16, 2), 900.0)])).warnings
    assert not any("two groups" in w for w in alone)


def test_each_boot_in_a_mode_of_its_own() -> None:
    warnings = compare("m", series([normal(12, 1)] * 2), series([normal(8, 2), normal(8, 3, 130.0)])).warnings
    assert any("each boot is in one of them" in w for w in warnings)


def test_a_conclusion_that_hangs_on_an_outlier() -> None:
    a = series([[100.0, 100.2, 99.9, 100.1, 100.05, 99.95]])
    b = series([[101.0, 101.2, 100.9, 101.1, 101.05, 20.0]])
    warnings = compare("m", a, b).warnings
    assert any(w.startswith("b: 20 (run 6) is an outlier") and "it is kept" in w for w in warnings)
    assert any(w.startswith("without it: +1.0") and w.endswith("THE CONCLUSION CHANGES") for w in warnings)


def test_of_many_outliers_the_farthest_are_named() -> None:
    heavy = np.random.default_rng(1).standard_cauchy(2000) + 5000.0
    result = compare("m", series([heavy.tolist()]), series([normal(50, 1)]))
    named = [w for w in result.warnings if "is an outlier" in w]
    distances = sorted((o.distance for o in result.outliers[0]), reverse=True)
    assert len(distances) > 40
    assert len(named) == 10
    assert f" {distances[0]:.0f} robust standard deviations" in " ".join(named)
    assert f"a: {len(distances) - 10} more outliers, nearer than these" in result.warnings


@pytest.mark.parametrize(("count", "said"), [(1, "all runs are of one boot"), (2, "2 boots a side"), (3, "")])
def test_few_boots(count: int, said: str) -> None:
    warnings = compare("m", series(boots(100, count, 5, 1)), series(boots(100, count, 5, 2))).warnings
    found = [w for w in warnings if "all runs are of one boot" in w or "boots a side" in w]
    assert [said in w for w in found] == ([True] if said else [])


def test_the_side_of_one_boot_is_named() -> None:
    warnings = compare("m", series(boots(100, 2, 5, 1)), series(boots(100, 1, 5, 2))).warnings
    assert "all runs of b are of one boot: what boots differ by is not in the interval" in warnings
    (found,) = [
        w
        for w in compare("m", series(boots(100, 3, 5, 1)), series(boots(100, 2, 5, 2))).warnings
        if "or more" in w
    ]
    assert found.startswith("3 and 2 boots of the sides: 3 or more tell")


def test_a_significant_result_needs_no_more_groups() -> None:
    a, b = series([[1.0, 1.1, 0.9, 1.05]]), series([[2.0, 2.1, 1.9, 2.05]])
    assert not any("need" in w for w in compare("m", a, b, threshold=0.0001).warnings)
    close = series([[1.01, 1.11, 0.91, 1.06]])
    assert any(w.startswith("a: 4 runs: need ") for w in compare("m", a, close, threshold=0.0001).warnings)


def test_a_significant_result_hides_no_values_that_were_left_out() -> None:
    a, b = [1.0, 1.1, 0.9, 1.05], [2.0, 2.1, 1.9, 2.05, float("nan")]
    result = compare("m", series([a]), series([b]))
    assert result.significant
    assert "b: 1 values are no finite numbers and left out" in result.warnings


def test_published_means_without_spread() -> None:
    mean = SampleSeries(((5.0,),), repeats=10)
    result = compare("m", mean, replace(mean, boots=((6.0,),)))
    assert result.verdict == "untested"
    assert "a: means of 10 runs without their spread: nothing can be tested" in result.warnings


def test_a_published_mean_hides_nothing_of_the_other_side() -> None:
    mean = SampleSeries(((5.0,),), error=0.1, repeats=10)
    assert "b: 1 values are no finite numbers and left out" in (
        compare("m", mean, series([[5.0, 5.1, 4.9, float("nan")]])).warnings
    )


def test_odd_values() -> None:
    odd = compare("m", series([[1.0, float("nan"), 2.0, float("inf")]]), series([[-1.0, 2.0]])).warnings
    assert "a: 2 values are no finite numbers and left out" in odd
    assert "values at or below zero: differences are compared, in percent of the base's median" in odd
    equal = compare("m", series([[5.0] * 4] * 3), series([[5.0] * 4] * 3)).warnings
    assert "all values of a side are equal: exact repetition, or a clock too coarse to tell" in equal


def test_a_published_mean_says_nothing_of_equal_runs() -> None:
    """Without its spread, a mean of ten runs is one number: that is no clock too coarse to tell."""
    equal, mean = series([[5.0] * 4] * 3), SampleSeries(((5.0,),), repeats=10)
    for pair in ((equal, mean), (mean, equal)):
        assert not any("all values of a side are equal" in text for text in compare("m", *pair).warnings)
