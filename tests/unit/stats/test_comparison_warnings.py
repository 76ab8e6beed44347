"""What a comparison warns of: outliers, two groups, missing runs, testbeds and metrics that disagree."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.report.comparison import render
from bisector.stats import outliers
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSet, Series, direction, halves, with_ratios, word


def normal(count: int, seed: int, level: float = 100.0, spread: float = 1.0) -> tuple[float, ...]:
    return tuple(level + spread * np.random.default_rng(seed).standard_normal(count))


def one(name: str, testbed: str = "", **metrics: tuple[float, ...]) -> SampleSet:
    return SampleSet(name, {m: Series((v,), "s", "lower") for m, v in metrics.items()}, testbed)


def test_two_groups_are_found_with_their_sizes() -> None:
    found = outliers.groups([normal(7, 1), normal(5, 2, level=120.0)])
    assert found is not None
    assert found.counts == (7, 5)
    assert found.by_boot
    mixed = outliers.groups([normal(6, 3) + normal(4, 4, level=130.0)] * 2)
    assert mixed is not None
    assert not mixed.by_boot


@pytest.mark.parametrize("count", [8, 12, 16, 30, 64])
def test_normal_values_are_one_group(count: int) -> None:
    found = [outliers.groups([normal(count, seed)]) for seed in range(200)]
    assert sum(g is not None for g in found) <= 3  # once in a thousand sets: 4 of 200 come once in 20,000


def test_too_few_values_and_equal_values_are_not_judged() -> None:
    assert outliers.groups([(1.0, 1.0, 1.0, 9.0, 9.0, 9.0)]) is None
    assert outliers.groups([(5.0,) * 20]) is None
    exact = outliers.groups([(5.0,) * 6 + (6.0,) * 6])
    assert exact is not None  # an exact clock that gives two values


def test_an_outlier_is_no_group() -> None:
    assert outliers.groups([(*normal(11, 5), 300.0)]) is None
    (far,) = outliers.find([(*normal(11, 5), 300.0)])
    assert (far.value, far.boot, far.run) == (300.0, 1, 12)


def test_groups_are_said_in_words() -> None:
    a, b = one("a", real=normal(12, 1)), one("b", real=normal(6, 2) + normal(6, 3, level=130.0))
    (text,) = [w for w in build([[a], [b]]).warnings if "two groups" in w]
    assert text.startswith("real: b: the runs fall into two groups, 6 near ")


def test_a_metric_in_some_runs_only_is_told_and_nothing_is_lost() -> None:
    a = one("a", real=normal(8, 1), faults=normal(3, 2))
    b = one("b", real=normal(8, 3), faults=normal(8, 4))
    sheet = build([[a], [b]])
    assert "a: not every metric is in all 8 runs: faults in 3" in sheet.warnings
    assert [r.metric for r in sheet.groups[0].rows] == ["real", "faults"]


def test_a_metric_of_one_side_only_is_kept_and_told() -> None:
    sheet = build([[one("a", real=normal(8, 1))], [one("b", real=normal(8, 2), sys=normal(8, 3))]])
    assert [r.metric for r in sheet.groups[0].rows] == ["real", "sys"]
    assert "sys: a has no number: not measured" in sheet.warnings


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(ValueError, match="no metric that two of the sets have in common"):
        build([[one("a", real=(1.0,))], [one("b", sys=(1.0,))]])


def test_testbeds_that_disagree_are_said_in_a_sentence() -> None:
    old = [one("old", "x", real=normal(8, 1)), one("old", "y", real=normal(8, 2))]
    new = [one("new", "x", real=normal(8, 3, level=110.0)), one("new", "y", real=normal(8, 4, level=90.0))]
    sheet = build([old, new])
    assert any(
        s.startswith("The testbeds disagree about real: new is worse on x (+") for s in sheet.sentences
    )
    head = render(sheet).splitlines()[:3]
    assert head[0] == "old -> new by testbed"
    assert head[1].split() == ["METRIC", "x", "y"]
    assert "slower" in head[2]
    assert "faster" in head[2]


def test_a_testbed_where_nothing_is_shown() -> None:
    old = [one("old", "x", real=normal(8, 1)), one("old", "y", real=normal(8, 2))]
    new = [one("new", "x", real=normal(8, 3, level=110.0)), one("new", "y", real=normal(8, 2))]
    (text,) = build([old, new]).sentences
    assert text.startswith("real: new is worse on x (+")
    assert text.endswith("nothing is shown on y (+0.00%).")


def test_metrics_that_disagree_are_said_in_a_sentence() -> None:
    old = one("old", real=normal(8, 1), instructions=normal(8, 2, spread=0.1))
    new = one("new", real=normal(8, 3, level=110.0), instructions=normal(8, 4, level=95.0, spread=0.1))
    (text,) = build([[old], [new]]).sentences
    assert text.startswith("The metrics disagree: new is better by instructions -")
    assert "but worse by real +" in text


def test_a_kernel_against_itself_in_halves() -> None:
    first, second = halves(one("k", real=tuple(map(float, range(1, 9)))))
    assert first.series["real"].boots == ((1.0, 3.0, 5.0, 7.0),)
    assert second.series["real"].boots == ((2.0, 4.0, 6.0, 8.0),)
    alarms = 0
    for seed in range(100):
        sheet = build([[s] for s in halves(one("k", real=normal(16, seed)))], same=True)
        alarms += "comparisons of the kernel with itself are significant" in " ".join(sheet.sentences)
        assert sheet.sentences[0].startswith("One kernel against itself")
    assert alarms <= 13  # 100 at 5%: 14 or more come about once in 2000 times


def test_ratios_run_by_run_and_from_published_means() -> None:
    runs = one("k", instructions=(10.0, 20.0), cycles=(5.0, 8.0))
    assert with_ratios(runs).series["ipc"].boots == ((2.0, 2.5),)
    assert with_ratios(runs).series["ipc"].better == "higher"
    means = SampleSet(
        "k",
        {
            "instructions": Series(((10.0,),), error=0.03, repeats=5),
            "cycles": Series(((5.0,),), error=0.04, repeats=5),
        },
    )
    ipc = with_ratios(means).series["ipc"]
    assert (ipc.boots, ipc.repeats) == (((2.0,),), 5)
    assert ipc.error == pytest.approx(0.05)
    none = one("k", instructions=(10.0,), cycles=(0.0,))
    assert "ipc" not in with_ratios(none).series


@pytest.mark.parametrize(
    ("name", "unit", "better"),
    [
        ("real", "s", "lower"),
        ("read.iops", "IOPS", "higher"),
        ("read.bw", "B/s", "higher"),
        ("will-it-scale.per_thread_ops", "", "higher"),
        ("Max-jOPs", "", "higher"),
        ("cycles", "", "lower"),
        ("ipc", "", "higher"),
        ("cache-misses", "", "lower"),
        ("x", "MB/s", "higher"),
    ],
)
def test_direction_by_name_and_unit(name: str, unit: str, better: str) -> None:
    assert direction(name, Series((), unit)) == better


def test_the_word_beside_the_sign() -> None:
    assert word(0.1, "real", Series((), "s"), "lower") == "slower"
    assert word(-0.1, "real", Series((), "s"), "lower") == "faster"
    assert word(0.1, "read.iops", Series((), "IOPS"), "higher") == "faster"
    assert word(0.1, "cycles", Series(()), "lower") == "more, worse"
    assert word(0.0, "cycles", Series(()), "lower") == "the same"


@pytest.mark.parametrize("form", ["people", "mmtests", "perf-stat", "robot", "runs", "json"])
@pytest.mark.parametrize(
    "values",
    [
        ((0.0,), (0.0,)),
        ((0.0, 0.0, 0.0, 0.0), (1.0, 2.0, 3.0, 4.0)),
        ((-1.0, -2.0, -3.0, -4.0), (5.0, 6.0, 7.0, 8.0)),
        ((1.0,), (2.0, 3.0)),
        ((1e-12, 2e-12), (1e12, 2e12)),
        ((float("nan"), 1.0), (2.0, float("inf"))),
    ],
)
def test_no_form_chokes_on_odd_values(form: str, values: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    text = render(build([[one("a", m=values[0])], [one("b", m=values[1])]]), form)
    assert "m" in text
    assert "-0.00%" not in text
    assert "nan" not in text.lower().replace("finite", "")
