"""The page of a comparison: one table and one drawing a pair, each run drawn, hostile names as text."""

from __future__ import annotations

from bisector.report.html import comparison_page
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
