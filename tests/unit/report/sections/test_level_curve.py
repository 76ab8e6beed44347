"""The levels along history of a loss that is spread: one line a measured commit, in words."""

from __future__ import annotations

import dataclasses

from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.report.html import bisection_page
from bisector.report.sections import level_curve
from tests.support.report_material import demo


def test_every_measured_commit_has_its_level_relative_to_good() -> None:
    material = demo()
    levels = ((0, Interval(-0.01, 0.0, 0.01)), (2, Interval(0.05, 0.06, 0.07)))
    conclusion = Conclusion(Ending.SPREAD, "spread", levels=levels)
    lines = level_curve.lines(material, conclusion)
    good, slower, note = lines[-3:]
    assert good.split()[0] == material.graph.shas[0][:12]
    assert slower.split()[0] == material.graph.shas[2][:12]
    assert "+6.0% slower (+5.0% .. +7.0%)" in slower
    assert note.startswith("  Each interval is of its level alone;"), "the total has a wider one"
    page = bisection_page.render(
        dataclasses.replace(
            material, conclusion=dataclasses.replace(conclusion, total=Interval(0.05, 0.06, 0.07))
        )
    )
    assert level_curve.NOTE in page and level_curve.NOTE not in bisection_page.render(material)
    higher = dataclasses.replace(material.goal.metric, better="higher")
    turned = dataclasses.replace(material, goal=dataclasses.replace(material.goal, metric=higher))
    assert "+6.0% faster" in level_curve.lines(turned, conclusion)[-2]
