"""Series and sets: which way is better, ratios of counters, halves, words of a change."""

from __future__ import annotations

import math

import pytest

from bisector.model.goal import Direction
from bisector.stats.comparison_table import build
from bisector.stats.samples import (
    SampleSeries,
    SampleSet,
    direction,
    halves,
    name_one_testbed,
    with_ratios,
    word,
)
from tests.support.samples import normal, sample_set


def test_a_kernel_against_itself_in_halves() -> None:
    first, second = halves(sample_set("k", real=tuple(map(float, range(1, 9)))))
    assert first.series["real"].boots == ((1.0, 3.0, 5.0, 7.0),)
    assert second.series["real"].boots == ((2.0, 4.0, 6.0, 8.0),)
    alarms = 0
    for seed in range(100):
        table = build([[s] for s in halves(sample_set("k", real=normal(16, seed)))], same=True)
        alarms += "comparisons of the kernel with itself are significant" in " ".join(table.sentences)
        assert table.sentences[0].startswith("One kernel against itself")
    assert alarms <= 13  # 100 at 5%: 14 or more come about once in 2000 times


def test_sets_without_a_testbed_are_of_the_only_one_that_is_named() -> None:
    def named(*columns: str) -> list[list[str]]:
        """Return testbeds after naming. columns: testbeds before, '-' for one without a name."""
        sets = [[sample_set("k", bed.strip("-"), real=(1.0,)) for bed in of.split()] for of in columns]
        return [[one.testbed for one in column] for column in name_one_testbed(sets)]

    assert named("-", "x", "-") == [["x"], ["x"], ["x"]]
    assert named("-", "x y", "x") == [[""], ["x", "y"], ["x"]]  # of which of the two it is nobody knows
    assert named("- x", "-") == [["", "x"], ["x"]]
    assert named("-", "-") == [[""], [""]]


def test_ratios_run_by_run_and_from_published_means() -> None:
    runs = sample_set("k", instructions=(10.0, 20.0), cycles=(5.0, 8.0))
    assert with_ratios(runs).series["ipc"].boots == ((2.0, 2.5),)
    assert with_ratios(runs).series["ipc"].better == "higher"
    means = SampleSet(
        "k",
        {
            "instructions": SampleSeries(((10.0,),), error=0.03, repeats=5),
            "cycles": SampleSeries(((5.0,),), error=0.04, repeats=5),
        },
    )
    ipc = with_ratios(means).series["ipc"]
    assert (ipc.boots, ipc.repeats) == (((2.0,),), 5)
    assert ipc.error == pytest.approx(0.05)
    unpaired = sample_set("k", instructions=(9.0, 10.0, 11.0), cycles=(5.0, 5.0))
    assert with_ratios(unpaired).series["ipc"].boots == ((2.0,),), "of the means"
    none = sample_set("k", instructions=(10.0,), cycles=(0.0,))
    assert "ipc" not in with_ratios(none).series


def test_a_ratio_of_modelled_numbers_is_a_models() -> None:
    misses = SampleSeries(((5.0,),), "modelled misses")
    found = with_ratios(SampleSet("a", {"branch-misses": misses, "branches": SampleSeries(((100.0,),))}))
    assert found.series["branch-miss-ratio"].unit.startswith("modelled ")


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
        ("flops", "", "higher"),
        ("linpack.GFLOPS", "", "higher"),
        ("stress-ng.fault.ops_per_sec", "", "higher"),
        ("cache.hits", "", "higher"),
        ("rx_drops", "", "lower"),
        ("loops", "", "lower"),
        ("stops", "", "lower"),
        ("errors_per_sec", "", "lower"),
        ("net.errors.per_sec", "", "lower"),
        ("major-faults/sec", "", "lower"),
        ("lost", "packets/s", "lower"),
        ("rx", "drops/s", "lower"),
        ("latency_at_qps", "", "lower"),
    ],
)
def test_direction_by_name_and_unit(name: str, unit: str, better: Direction) -> None:
    assert direction(name, SampleSeries((), unit)) == better


def test_the_word_beside_the_sign() -> None:
    assert word(0.1, "real", SampleSeries((), "s"), "lower") == "slower"
    assert word(-0.1, "real", SampleSeries((), "s"), "lower") == "faster"
    assert word(0.1, "read.iops", SampleSeries((), "IOPS"), "higher") == "faster"
    assert word(0.1, "cycles", SampleSeries(()), "lower") == "more, worse"
    assert word(0.1, "lost", SampleSeries((), "packets/s"), "lower") == "more, worse"
    assert word(0.1, "stall", SampleSeries((), "ms"), "lower") == "slower"
    assert word(0.0, "cycles", SampleSeries(()), "lower") == "the same"
    assert word(-0.1, "Max-jOPs", SampleSeries(()), "higher") == "slower"
    assert word(-0.1, "ops", SampleSeries((), "tasks"), "higher") == "less, worse", (
        "its unit says what there is of"
    )
    assert word(0.1, "value", SampleSeries(()), "lower") == "slower"
    assert word(0.1, "value", SampleSeries((), "dB"), "higher") == "more, better"
    assert word(0.1, "mean", SampleSeries((), "drops"), "lower") == "more, worse", "drops are no operations"
    assert word(0.1, "run", SampleSeries((), "Mops"), "higher") == "faster"
    assert word(0.1, "pipe", SampleSeries((), "ns/op"), "lower") == "slower"


def test_values_are_finite_and_a_published_mean_is_no_run() -> None:
    assert SampleSeries(((1.0, math.nan), (math.inf,), (2.0,))).values == (1.0, 2.0)
    assert not SampleSeries(((1.0,),)).published
    assert SampleSeries(((1.0,),), error=0.1).published
    assert SampleSeries(((1.0,),), repeats=5).published


def test_halves_of_several_boots_are_whole_boots() -> None:
    whole = SampleSet("k", {"real": SampleSeries(((1.0, 2.0), (), (3.0,), (4.0,)))})
    first, second = halves(whole)
    assert first.series["real"].boots == ((1.0, 2.0), (4.0,))
    assert second.series["real"].boots == ((3.0,),)


def test_two_repeats_are_a_published_mean() -> None:
    """`perf stat -r 2`: its one number is a mean, and must not be tested as if it were a single run."""
    assert SampleSeries(((1.0,),), repeats=2).published
    assert not SampleSeries(((1.0,),), repeats=1).published


@pytest.mark.parametrize(
    ("name", "unit"), [("p99", "ms"), ("read.iops", "IOPS"), ("fork.elapsed", ""), ("rate", "MB/s")]
)
def test_a_time_or_rate_is_slower_by_its_unit_or_its_name(name: str, unit: str) -> None:
    assert word(0.1, name, SampleSeries((), unit), "lower") == "slower"


def test_halves_of_a_kernel_do_not_compare_its_size_with_itself() -> None:
    first, second = halves(SampleSet("k", {}, sizes={"text": 100}))
    assert (first.sizes, second.sizes) == ({}, {})
