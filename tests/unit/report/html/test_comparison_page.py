"""The page of a comparison: one table and one drawing a pair, each run drawn, hostile names as text."""

from __future__ import annotations

import re

import pytest

from bisector.model.decisions import Interval
from bisector.report.html import comparison_page, effect_chart
from bisector.stats import comparison_table
from bisector.stats.samples import SampleSeries, SampleSet
from tests.support.report_material import HOSTILE


def render(name: str = "new", threshold: float = 0.02) -> str:
    old = SampleSet("old", {"real": SampleSeries(((1.0, 1.01, 0.99), (1.0, 1.02, 1.01)), "s", "lower")})
    new = SampleSet(
        name, {"real": SampleSeries(((1.1, 1.11, 1.09), (1.1, float("nan"), 1.12)), "s", "lower")}
    )
    return comparison_page.render(comparison_table.build([[old], [new]], threshold=threshold))


def test_the_page_has_the_change_its_drawing_and_every_run() -> None:
    page = render()
    assert page.count("<svg") == 2  # the effects, and the strips of one metric
    assert ">+9.95%</text>" in page and "+9.95% slower" in page and '<th scope="row">real</th>' in page
    strips = page.rpartition("<svg")[2]
    assert strips.count("h0") == 11  # of twelve runs one is no number
    assert "<script" not in page and "nan" not in strips


def test_lines_of_the_threshold_are_named_where_they_are() -> None:
    for threshold, drawn in ((0.02, True), (0.0, False), (0.9, False)):
        page = render(threshold=threshold)
        assert ('class="threshold"' in page) is ("dashed lines" in page) is drawn, threshold


def test_hostile_names_stay_text() -> None:
    page = render(HOSTILE)
    assert "<script" not in page and "<img" not in page
    assert page.count("<svg") == 2


def of(name: str, level: float, testbed: str = "") -> SampleSet:
    boots = tuple(tuple(level + step for step in steps) for steps in ((0.0, 0.01, -0.01), (0.0, 0.02, 0.01)))
    return SampleSet(name, {"real": SampleSeries(boots, "s", "lower")}, testbed)


def test_each_kernel_has_its_row_against_the_first() -> None:
    sides = [[of("old", 1.0)], [of("slow", 1.1)], [of("fast", 0.9)]]
    found = comparison_page.content(comparison_table.build(sides, alpha=0.05, threshold=0.02))
    assert {pair["title"]: pair["rows"] for pair in found["pairs"]} == {
        "old -> slow": [
            (
                *("real", "1.0050 s \u00b1 1.0% (6)", "1.1050 s \u00b1 0.9% (6)"),
                *("+9.95% slower", "+6.79% .. +13.21%", "+9.95%", "0.0052"),
            )
        ],
        "old -> fast": [
            (
                *("real", "1.0050 s \u00b1 1.0% (6)", "0.90500 s \u00b1 1.2% (6)"),
                *("-9.95% faster", "-12.81% .. -6.99%", "-9.95%", "0.0052"),
            )
        ],
    }
    assert found["head"] == ("Metric", "Base", "Other", "Change", "Interval", "Mean", "p")
    assert found["interval"] == "95%" and found["same"] is False
    assert found["warnings"][0].startswith("real: 2 boots a side")
    slow, fast = (str(pair["chart"]) for pair in found["pairs"])
    assert (
        '<g class="level new"><title>real: +9.95%' in slow
        and '<g class="level old"><title>real: -9.95%' in fast
    )
    assert slow.count('class="threshold"') == 2, "of a loss and of a gain"
    ((_, _, strip),) = found["strips"]
    assert re.findall(r"<title>(\w+)</title><text", strip) == ["old", "slow", "fast"]
    assert re.findall(r'class="dots (\w+)"', strip) == ["old"] * 2 + ["new"] * 4, "a boot each"


def test_a_mark_is_at_the_estimate_and_a_line_reaches_from_end_to_end() -> None:
    row = ("real", Interval(0.0, 0.03, 0.04), "")
    drawn = str(effect_chart.render("n", "t", [row]))
    (low, high), (at,) = (
        re.findall(r"M([\d.]+) 41.0H([\d.]+)", drawn)[0],
        re.findall(r'd="M([\d.]+) 35.0l', drawn),
    )
    assert float(at) - float(low) == pytest.approx(3 * (float(high) - float(at)), rel=0.01)


def test_testbeds_are_told_apart_and_what_is_said_of_them_is_shown() -> None:
    sides = [
        [of("old", 1.0, "box-1"), of("old", 2.0, "box-2")],
        [of("new", 1.1, "box-1"), of("new", 1.6, "box-2")],
    ]
    table = comparison_table.build(sides, threshold=0.02)
    found = comparison_page.content(table)
    assert [(pair["title"], pair["rows"][0][3]) for pair in found["pairs"]] == [
        ("box-1: old -> new", "+9.95% slower"),
        ("box-2: old -> new", "-19.95% faster"),
    ]
    (sentence,) = found["sentences"]
    assert sentence.startswith("The testbeds disagree about real: new is worse on box-1 (+9.95%")
    page = comparison_page.render(table)
    assert all(one in page for one in ("The testbeds disagree", "95%", "2 boots a side"))


def test_an_effect_without_a_number_is_in_the_table_alone() -> None:
    zero = SampleSet("zero", {"real": SampleSeries(((0.0,), (0.0,), (0.0,)), "s", "lower")})
    some = SampleSet("some", {"real": SampleSeries(((1.0,), (1.1,), (1.2,)), "s", "lower")})
    (pair,) = comparison_page.content(comparison_table.build([[zero], [some]]))["pairs"]
    assert pair["chart"] is None and pair["rows"][0][0] == "real"
