"""MMTests' form: positive is better, harmonic means of rates, the best N percent."""

from __future__ import annotations

import statistics

import pytest

from bisector.report.comparison import mmtests_form
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSet
from tests.support.samples import sample_set, two_kernels

TEXT = mmtests_form.render(two_kernels())


def cells(name: str, metric: str) -> list[str]:
    (line,) = [line for line in TEXT.splitlines() if line.split()[:2] == [name, metric]]
    return line.replace("(", " ").replace("%)", " ").split()[2:]


def test_more_seconds_are_worse_and_more_operations_better() -> None:
    assert cells("Min", "real") == ["9.90", "0.00", "11.90", "-20.20"]
    assert cells("Max", "iops") == ["110.00", "0.00", "120.00", "9.09"]
    assert cells("Stddev", "iops")[0] == f"{statistics.stdev([100, 110, 90, 100]):.2f}"
    assert cells("Stddev", "iops")[3] == "-4.58"  # more scatter is worse, whatever the metric


def test_rates_have_harmonic_means_and_times_arithmetic_ones() -> None:
    assert cells("Hmean", "iops")[0] == f"{statistics.harmonic_mean([100, 110, 90, 100]):.2f}"
    assert cells("Amean", "real")[0] == "10.00"
    assert "Hmean     real" not in TEXT
    negative = build([[sample_set("a", iops=(-1.0, 2.0))], [sample_set("b", iops=(1.0, 2.0))]])
    assert "Hmean" not in mmtests_form.render(negative)


def test_stars_mark_what_is_significant() -> None:
    assert "12.00 * -20.00%*" in TEXT
    assert TEXT.count("*") == 4  # and the legend


def test_the_best_half_are_the_smallest_times_and_the_largest_rates() -> None:
    assert cells("BAmean-50", "real")[0] == "9.95"
    assert cells("BHmean-50", "iops")[0] == f"{statistics.harmonic_mean([110, 100]):.2f}"


def test_a_published_mean_has_no_statistics_of_runs() -> None:
    assert cells("Amean", "cycles") == ["2000000.00", "0.00", "2100000.00", "-5.00"]
    assert "Min       cycles" not in TEXT


def test_equal_values_have_a_deviation_of_exactly_zero() -> None:
    text = mmtests_form.render(build([[sample_set(n, real=(0.1,) * 3)] for n in ("a", "b")]))
    assert [line.split()[2] for line in text.splitlines() if line.startswith(("Stddev", "CoeffVar"))] == [
        "0.00"
    ] * 2


@pytest.mark.parametrize(
    ("base", "value", "higher", "gain"),
    [
        (10, 12, True, 20),
        (10, 12, False, -20),
        (-10, -12, True, -20),
        (0, 0, True, 0),
        (0, 1, True, None),
        (None, 1, True, None),
    ],
)
def test_gain(base: float | None, value: float, higher: bool, gain: float | None) -> None:
    assert mmtests_form.gain(base, value, higher=higher) == gain


def test_long_names_fold_at_dashes() -> None:
    names = ("6.1.0-rc1-a-long-flavour-of-a-kernel", "b")
    lines = mmtests_form.render(build([[sample_set(n, real=(1.0, 2.0))] for n in names])).splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["6.1.0-rc1-a-long", "flavour-of-a-kernel"]


def test_sizes_alone_have_no_empty_table_above_them() -> None:
    old, new = (SampleSet(name, {}, sizes={"text": size}) for name, size in (("old", 1), ("new", 2)))
    assert mmtests_form.render(build([[old], [new]])).splitlines()[0] == "sizes in bytes"
    assert "Positive" not in mmtests_form.render(build([[old], [new]]))
