"""The default form on a small table with known numbers."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.report.comparison import run_table, table
from bisector.stats.comparison_result import SetSummary
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSeries, SampleSet
from tests.support.samples import normal, sample_set, two_kernels


def test_a_line_for_each_metric() -> None:
    lines = table.render(two_kernels()).splitlines()
    assert lines[0] == "amd: 6.1 -> 6.2-rt"
    assert lines[1].split("  ")[0] == "METRIC"
    # ratios of the extremes: 11.9 / 10.1 and 12.1 / 9.9; 2 of 70 splits are as extreme
    assert lines[2] == (
        "real    10.000 s ± 0.8% (4)     12.000 s ± 0.7% (4)     +20.00% slower  +17.82% .. +22.22%"
        "  +20.00%  0.0286"
    )
    assert "~ not shown" in lines[3]
    assert "+8.75%" in lines[3]


@pytest.mark.parametrize("width", [60, 70, 80])
def test_it_fits_the_terminal_without_breaking_a_word(width: int) -> None:
    lines = table.render(two_kernels(), width).splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for word in ("METRIC", "CHANGE", "INTERVAL", "+20.00%", "slower", "+17.82% .. +22.22%", "10.000"):
        assert word in text
    assert "MEAN" not in text


@pytest.mark.parametrize(
    ("threshold", "verdict", "significant", "text"),
    [
        (0.05, "worse", True, "+20.00% slower"),
        (0.05, "same", False, "~ the same"),
        (0.0, "same", False, "~ not shown"),
        (0.05, "unclear", False, "~ not shown"),
        (0.05, "untested", False, "+20.00% slower, not tested"),
    ],
)
def test_a_change_in_words(threshold: float, verdict: str, significant: bool, text: str) -> None:
    found = two_kernels().testbeds[0].rows[0].comparisons[0]
    assert found is not None
    changed = dataclasses.replace(found, verdict=verdict, significant=significant)  # type: ignore[arg-type]
    assert table.change(changed, threshold) == text


def test_small_changes_keep_their_digits() -> None:
    """By a clock without noise a change of 0.03% was '+0.03% slower  +0.03% .. +0.03%'."""
    counts = [
        SampleSet(name, {"instructions": SampleSeries(boots, "", "lower")})
        for name, boots in (
            ("old", ((1000000.0,), (1000001.0,), (1000002.0,), (1000003.0,))),
            ("new", ((1000301.0,), (1000302.0,), (1000303.0,), (1000304.0,))),
        )
    ]
    found = build([[one] for one in counts]).testbeds[0].rows[0].comparisons[0]
    assert found is not None
    assert table.change(found, 0.0) == "+0.0301% more, worse"
    assert table.limits(found) == "+0.0298% .. +0.0304%"
    assert table.mean_change(found) == "+0.0301%"
    assert table.shift(found) == "+0.0301% of the number"


def test_a_level_shows_the_spread_of_runs_or_the_error_of_a_mean() -> None:
    mean = SetSummary("k", 1, 1, 5.0, 5.0, 0.0, 0.0, 5.0, 5.0, error=0.0123)
    assert table.level(mean, "s") == "5.0000 s +-1.23%"
    assert table.level(dataclasses.replace(mean, cv=0.004, runs=8), "") == "5.0000 ± 0.4% (8)"
    assert table.level(dataclasses.replace(mean, cv=0.0004, error=None), "") == "5.0000"


@pytest.mark.parametrize(
    ("p", "text"), [(0.00001, "<0.0001"), (0.0286, "0.0286"), (0.1, "0.10"), (1.0, "1.00")]
)
def test_p_values(p: float, text: str) -> None:
    assert table.p_value(p) == text


def test_five_testbeds_take_two_tables() -> None:
    columns = [
        [sample_set(name, f"bed{i}", real=normal(8, i + seed)) for i in range(5)]
        for name, seed in (("old", 0), ("new", 50))
    ]
    lines = table.render(build(columns)).splitlines()
    heads = [line.split() for line in lines if line.startswith("METRIC") and "BASE" not in line]
    assert heads == [["METRIC", "bed0", "bed1", "bed2", "bed3"], ["METRIC", "bed4"]]


def test_a_change_from_zero_is_in_the_unit_of_the_metric() -> None:
    """There are no percentages of 0: the change was '?', its interval 'none'."""
    before = SampleSet("old", {"drops": SampleSeries(((0.0, 0.0), (0.0, 0.0), (0.0,), (0.0,)), "drops")})
    after = SampleSet("new", {"drops": SampleSeries(((5.0, 5.0), (6.0, 6.0), (5.0,), (6.0,)), "drops")})
    found = build([[before], [after]])
    text = table.render(found)
    assert "+5.5 drops more, worse  +5 .. +6 drops  +5.5 drops" in text
    assert "?" not in text
    assert "the base's median is 0, of which there are no percentages" in text
    assert "Hodges-Lehmann +5.5 drops, interval +5 .. +6 drops" in " ".join(run_table.render(found).split())
    itself = " ".join(table.render(build([[before], [after]], same=True)).split())
    assert "its means differ by up to 5.5 drops (drops)" in itself
    assert "are significant (drops +5.5 drops (more, worse))" in itself
