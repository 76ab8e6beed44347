"""Several kernels, metrics and testbeds in one table: nothing is lost, and what does not agree is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.report.comparison import FORMS, render
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSeries, SampleSet
from tests.support.samples import normal, sample_set


def test_a_metric_in_some_runs_only_is_told_and_nothing_is_lost() -> None:
    a = sample_set("a", real=normal(8, 1), faults=normal(3, 2))
    b = sample_set("b", real=normal(8, 3), faults=normal(8, 4))
    table = build([[a], [b]])
    assert "a: not every metric is in all 8 runs: faults in 3" in table.warnings
    assert [r.metric for r in table.testbeds[0].rows] == ["real", "faults"]


def test_a_metric_of_one_side_only_is_kept_and_told() -> None:
    table = build(
        [[sample_set("a", real=normal(8, 1))], [sample_set("b", real=normal(8, 2), sys=normal(8, 3))]]
    )
    assert [r.metric for r in table.testbeds[0].rows] == ["real", "sys"]
    assert "sys: a has no number: not measured" in table.warnings


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(ValueError, match="no metric that two of the sets have in common"):
        build([[sample_set("a", real=(1.0,))], [sample_set("b", sys=(1.0,))]])


def test_testbeds_that_disagree_are_said_in_a_sentence() -> None:
    old = [sample_set("old", "x", real=normal(8, 1)), sample_set("old", "y", real=normal(8, 2))]
    new = [
        sample_set("new", "x", real=normal(8, 3, level=110.0)),
        sample_set("new", "y", real=normal(8, 4, level=90.0)),
    ]
    table = build([old, new])
    assert any(
        s.startswith("The testbeds disagree about real: new is worse on x (+") for s in table.sentences
    )
    head = render(table).splitlines()[:3]
    assert head[0] == "old -> new by testbed"
    assert head[1].split() == ["METRIC", "x", "y"]
    assert "slower" in head[2]
    assert "faster" in head[2]


def test_a_testbed_where_nothing_is_shown() -> None:
    old = [sample_set("old", "x", real=normal(8, 1)), sample_set("old", "y", real=normal(8, 2))]
    new = [sample_set("new", "x", real=normal(8, 3, level=110.0)), sample_set("new", "y", real=normal(8, 2))]
    (text,) = build([old, new]).sentences
    assert text.startswith("real: new is worse on x (+")
    assert text.endswith("nothing is shown on y (+0.00%).")


def test_metrics_that_disagree_are_said_in_a_sentence() -> None:
    old = sample_set("old", real=normal(8, 1), instructions=normal(8, 2, spread=0.1))
    new = sample_set("new", real=normal(8, 3, level=110.0), instructions=normal(8, 4, level=95.0, spread=0.1))
    (text,) = build([[old], [new]]).sentences
    assert text.startswith("The metrics disagree: new is better by instructions -")
    assert "but worse by real +" in text


def test_a_metric_that_did_not_change_disagrees_with_none() -> None:
    old = sample_set("old", real=normal(8, 1), sys=normal(8, 2), instructions=normal(8, 2, spread=0.1))
    new = sample_set(
        "new", real=normal(8, 3, level=110.0), sys=normal(8, 2), instructions=normal(8, 4, 95.0, spread=0.1)
    )
    (text,) = build([[old], [new]]).sentences
    assert "sys" not in text
    without = [[SampleSet(s.name, {name: s.series[name] for name in ("real", "sys")})] for s in (old, new)]
    assert build(without).sentences == ()


def test_a_kernel_against_itself_is_told_by_the_metric_that_differs_most() -> None:
    """What it differs by is what a change between kernels must exceed."""
    halves = (
        sample_set("1st", real=(100.0, 101.0, 99.0, 100.0), sys=(50.0, 51.0, 49.0, 50.0)),
        sample_set("2nd", real=(103.0, 104.0, 102.0, 103.0), sys=(50.5, 51.5, 49.5, 50.5)),
    )
    first = build([[one] for one in halves], same=True).sentences[0]
    assert "differ by up to 3.00% (real)" in first


def test_sizes_alone_are_enough_for_a_table() -> None:
    table = build([[SampleSet(name, {}, sizes={"text": 10})] for name in ("a", "b")])
    assert table.testbeds[0].rows == ()
    with pytest.raises(ValueError, match="in common"):
        build([[SampleSet("a", {}, sizes={"text": 10})], [SampleSet("b", {})]])


def test_a_warning_of_every_metric_is_said_once_without_their_names() -> None:
    few = (1.0, 2.0)
    table = build([[sample_set(name, real=few, user=few)] for name in ("a", "b")])
    assert "a: 2 runs: need 4 for a test at 5%" in table.warnings


def test_a_warning_of_some_testbeds_names_them() -> None:
    old = [sample_set("old", "x", real=normal(8, 1)), sample_set("old", "y", real=(1.0,))]
    new = [sample_set("new", "x", real=normal(8, 2)), sample_set("new", "y", real=(1.0,))]
    assert "y: real: old: 1 run: need 4 for a test at 5%" in build([old, new]).warnings


def test_untested_means_still_disagree() -> None:
    old, new = sample_set("old", real=(10.0,), user=(10.0,)), sample_set("new", real=(11.0,), user=(9.0,))
    (text,) = build([[old], [new]]).sentences
    assert text == (
        "The metrics disagree: new is better by user -10.00% (faster, not tested), "
        "but worse by real +10.00% (slower, not tested)."
    )


def test_a_metric_without_a_number_says_why() -> None:
    a = SampleSet("a", {"real": SampleSeries(((1.0,),))}, missing={"cycles": "not supported"})
    table = build([[a], [sample_set("b", real=(1.0,), cycles=(5.0,))]], metrics=["cycles", "real"])
    row = next(r for r in table.testbeds[0].rows if r.metric == "cycles")
    assert (row.cells[0], row.why) == (None, ("not supported", ""))
    assert "cycles: a has no number: not supported" in table.warnings


def test_a_warning_of_all_testbeds_or_of_some_metrics_only() -> None:
    few, many = (1.0,), normal(8, 1)
    columns = [[sample_set(name, bed, real=few, user=many) for bed in "xy"] for name in ("a", "b")]
    assert "real: a: 1 run: need 4 for a test at 5%" in build(columns).warnings
    three = [[sample_set(name, real=few, user=few, sys=many)] for name in ("a", "b")]
    assert "real, user: a: 1 run: need 4 for a test at 5%" in build(three).warnings


def test_a_kernel_that_differs_from_itself_is_told() -> None:
    """The user has to know that changes between kernels may be the measurement's own."""
    halves = [[sample_set("k", real=normal(8, 1))], [sample_set("k", real=normal(8, 2, level=110.0))]]
    said = build(halves, same=True).sentences
    assert said[1].startswith("1 of 1 comparisons of the kernel with itself are significant (real ")
    assert len(build([[sample_set("k", real=normal(8, 1))]] * 2, same=True).sentences) == 1


def test_a_metric_that_nobody_measured_is_said_to_be_a_models() -> None:
    misses = SampleSeries(((100.0,), (101.0,)), unit="modelled misses")
    other = SampleSeries(((120.0,), (121.0,)), unit="misses")  # of another tool
    sets = [SampleSet(name, {"LL-misses": misses, "cache-misses": other}) for name in ("a", "b")]
    said = "Of a model, never measured: LL-misses."
    assert said in build([[one] for one in sets]).sentences
    assert said not in build([[one] for one in sets], metrics=["cache-misses"]).sentences
    known = [[replace(one, modelled="a Skylake: L1d 32 KiB")] for one in sets]
    assert build(known).sentences == (
        "Of a model, never measured: LL-misses. The model is of a Skylake: L1d 32 KiB.",
    )


def modelled(name: str, processor: str, level: float, testbed: str = "") -> SampleSet:
    misses = SampleSeries(((level, level + 1),), "modelled misses", "lower")
    counted = SampleSeries(((2 * level, 2 * level),), "instructions", "lower")
    return SampleSet(name, {"LL-misses": misses, "instructions": counted}, testbed, modelled=processor)


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_two_models_are_shown_and_not_compared(form: str) -> None:
    table = build([[modelled("a", "Nehalem", 100.0)], [modelled("b", "Zen 2", 150.0)]])
    rows = {row.metric: row for row in table.testbeds[0].rows}
    assert rows["LL-misses"].comparisons == (None,) and all(rows["LL-misses"].cells)
    assert rows["instructions"].comparisons[0] is not None
    said = "LL-misses: b is of another model than a, they do not compare: a's is of Nehalem; b's of Zen 2"
    assert said in table.warnings
    both = "Of a model, never measured: LL-misses. The models are of Nehalem and of Zen 2."
    assert both in table.sentences
    assert "do not compare: a's is of Nehalem; b's of Zen 2" in " ".join(render(table, form).split())


def test_numbers_of_two_models_alone_are_nothing_to_compare() -> None:
    columns = [[modelled("a", "Nehalem", 100.0)], [modelled("b", "Zen 2", 150.0)]]
    with pytest.raises(ValueError, match="LL-misses: b is of another model than a"):
        build(columns, metrics=["LL-misses"])
    same = [[modelled("a", "Zen 2", 100.0)], [modelled("b", "Zen 2", 150.0)]]
    assert build(same, metrics=["LL-misses"]).testbeds[0].rows[0].comparisons[0] is not None


def test_each_testbed_has_its_own_model() -> None:
    columns = [
        [modelled(name, "Nehalem", level, "x"), modelled(name, "Zen 2", level, "y")]
        for name, level in (("a", 100.0), ("b", 150.0))
    ]
    table = build(columns)
    assert all(row.comparisons[0] is not None for testbed in table.testbeds for row in testbed.rows)
    assert table.sentences[-1] == (
        "Of a model, never measured: LL-misses. The models are of Nehalem and of Zen 2."
    )
