"""The report says which functions account for a culprit's effect, where both kernels were counted."""

from __future__ import annotations

import dataclasses

from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.records import Left
from bisector.report import text
from bisector.report.profiles import explained_effect
from bisector.report.report_model import Material
from tests.support.report_material import demo


def counted(material: Material, values: dict[int, dict[str, float]]) -> Material:
    """Return the material with what was counted in the first boot of each commit."""
    boots = {visit.commit: visit.boot for visit in reversed(material.state.boots)}
    left = [
        (900 + commit, Left(boots[commit], monitors=(result(functions),)))
        for commit, functions in values.items()
    ]
    return dataclasses.replace(material, records=[*material.records, *left])


def result(functions: dict[str, float]) -> MonitorResult:
    seen = (MonitorValue(name, value, "instructions") for name, value in functions.items())
    return MonitorResult("counters", "/c", tuple(seen))


def test_the_culprit_is_explained_by_its_functions() -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    parent, culprit = finding.parents[0], finding.commits[0]
    assert explained_effect.lines(material, finding) == []
    half = counted(material, {parent: {"lock": 100.0}})
    assert explained_effect.lines(half, finding) == []
    both = counted(half, {culprit: {"lock": 100.0, "rt_spin_lock": 25.0}})
    both = dataclasses.replace(both, touched=frozenset(["rt_spin_lock"]))
    said = "\n".join(explained_effect.lines(both, finding))
    assert "*rt_spin_lock" in said
    assert "Of +25 instructions a run (+25.00%) the functions above account for +25; +0" in said
    names = [material.commit(index).sha[:12] for index in (parent, culprit)]
    assert f"perfbisect profile {material.id}:{names[0]} {material.id}:{names[1]}" in said
    assert "Functions that account for it" in text.render(both)


def test_several_boots_of_a_commit_count_as_their_mean() -> None:
    material = demo()
    boots = [visit.boot for visit in material.state.boots if visit.commit == material.graph.bad]
    records = [
        (900 + n, Left(boot, monitors=(result({"lock": 10.0 * n, "[user programs]": 4.0}),)))
        for n, boot in enumerate(boots, start=1)
    ]
    found = explained_effect.counted(
        dataclasses.replace(material, records=[*material.records, *records]), material.graph.bad
    )
    assert found is not None
    assert found.total == 4.0 + 10.0 * (len(boots) + 1) / 2
