"""The report says which functions account for a culprit's effect, where both kernels were counted."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.goal import TestbedClock
from bisector.model.records import Booted, Left, Record
from bisector.report import json_report, text
from bisector.report.html import bisection_page
from bisector.report.profiles import explained_effect
from bisector.report.report_model import Material
from bisector.schemas.report_document import CountedFunctions
from bisector.schemas.workload.counted_metrics import counted_metric
from bisector.schemas.workload.workload import load_workload
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
    both = dataclasses.replace(
        both, touched={culprit: frozenset(["rt_spin_lock"]), parent: frozenset(["lock"])}
    )
    said = "\n".join(explained_effect.lines(both, finding))
    assert "*rt_spin_lock" in said
    assert "*lock" not in said, "another culprit changes it"
    assert "Of +25 instructions a run (+25.00%) the functions above account for +25; +0" in said
    names = [material.commit(index).sha[:12] for index in (parent, culprit)]
    assert f"perfbisect profile {material.id}:{names[0]} {material.id}:{names[1]}" in said
    assert "Functions that account for it" in text.render(both)


def test_a_set_is_explained_by_the_one_that_was_measured() -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *others) = material.conclusion.findings
    parent, culprit = finding.parents[0], finding.commits[0]
    untested = culprit + 1
    together = dataclasses.replace(finding, commits=(untested, culprit))
    conclusion = dataclasses.replace(material.conclusion, findings=(together, *others))
    both = counted(material, {parent: {"lock": 100.0, "read": 10.0}, culprit: {"lock": 125.0, "read": 11.0}})
    touched = {culprit: frozenset(["read"]), untested: frozenset(["lock"])}
    both = dataclasses.replace(both, conclusion=conclusion, touched=touched)
    said = text.render(both)
    names = [material.commit(index).sha[:12] for index in (parent, culprit)]
    assert f"Functions that account for it: {names[0]} and {names[1]}" in said
    assert "*lock" in said
    assert "*read" in said


def test_page_and_machines_are_told_the_same_as_the_text() -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    assert explained_effect.render(material, finding) is None
    assert "Functions that account" not in bisection_page.render(material)
    both = counted(material, {finding.parents[0]: {"lock": 100.0}, finding.commits[0]: {"lock": 125.0}})
    (reported, *_) = json_report.render(both)["findings"]
    found = reported["functions"]
    assert (found["of_the_metric"], found["totals"], found["rest"]) == (True, [100.0, 125.0], 0.0)
    assert [(one["name"], one["change"]) for one in found["functions"]] == [("lock", 25.0)]
    CountedFunctions.model_validate(found)
    page = bisection_page.render(both)
    assert "Functions that account for it" in page
    assert "a message" not in page
    told = dataclasses.replace(both, work=("message", 10))
    for said in (bisection_page.render(told), text.render(told)):
        assert "+25 instructions a run, +2.5 a message" in " ".join(said.split())
    assert "perfbisect profile b-1:" in page


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("pipe-test", "+500,000 instructions a run, +25 a round trip (+0.50%)"),
        ("hackbench/small", "+500,000 instructions a run, +6.25 a message (+0.50%)"),
        ("db-aio", "+500,000 instructions a run, +25 an I/O (+0.50%)"),
    ],
)
def test_reports_of_shipped_workloads_tell_the_effect_in_their_units(workload: str, said: str) -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    both = counted(material, {finding.parents[0]: {"lock": 100e6}, finding.commits[0]: {"lock": 100.5e6}})
    manifest = load_workload(workload).manifest
    assert manifest.work is not None
    told = dataclasses.replace(both, work=manifest.work.in_a_run(manifest.parameters))
    assert said in " ".join(text.render(told).split())


def test_who_calls_what_grew_is_said_everywhere() -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    before = {"lock": 100.0, "lock < write": 60.0, "lock < read": 40.0}
    after = {"lock": 125.0, "lock < write": 85.0, "lock < read": 40.0}
    both = counted(material, {finding.parents[0]: before, finding.commits[0]: after})
    said = "lock (+25) is called from write (+25)."
    assert "Of +25 instructions a run (+25.00%)" in " ".join(explained_effect.lines(both, finding))
    assert said in " ".join(" ".join(explained_effect.lines(both, finding)).split())
    assert said in bisection_page.render(both)
    found = json_report.render(both)["findings"][0]["functions"]
    CountedFunctions.model_validate(found)
    assert [one["name"] for one in found["functions"][0]["callers"]] == ["write", "read"]


@pytest.mark.parametrize(
    ("name", "unit", "programs"),
    [
        ("LL-misses", "modelled misses to memory", "what programs missed themselves is not among them"),
        ("dTLB-misses", "modelled misses of the dTLB", "what programs missed themselves is not among them"),
        ("modelled-cycles", "modelled cycles", "those of programs are not among them"),
    ],
)
def test_modelled_numbers_that_decide_are_explained_by_functions(name: str, unit: str, programs: str) -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    metric = dataclasses.replace(material.goal.metric, name=name, unit="modelled ones")
    material = dataclasses.replace(material, goal=dataclasses.replace(material.goal, metric=metric))

    def boot(clear: float, others: float, **user: float) -> MonitorResult:
        seen = [
            MonitorValue("clear_page", 900.0, "instructions"),
            MonitorValue("x", 7.0, "modelled misses of L1d"),
        ]
        missed = (("clear_page", clear), ("[other functions]", others), *user.items())
        seen += [MonitorValue(function, value, unit) for function, value in missed]
        return MonitorResult("counters", "/c", tuple(seen))

    boots = {visit.commit: visit.boot for visit in reversed(material.state.boots)}
    left = [
        (900, Left(boots[finding.parents[0]], monitors=(boot(64, 36),))),
        (901, Left(boots[finding.commits[0]], monitors=(boot(128, 37),))),
    ]
    both = dataclasses.replace(material, records=[*material.records, *left])
    said = " ".join(" ".join(explained_effect.lines(both, finding)).split())
    assert "Functions that account for it" in said
    assert f"{unit.upper()} A RUN" in said
    assert f"Of +65 {unit} a run (+65.00%)" in said
    assert "never measured" in said and "Counted, not sampled" not in said
    assert programs in said
    found = json_report.render(both)["findings"][0]["functions"]
    assert (found["unit"], found["of_the_metric"], found["totals"]) == (
        unit,
        True,
        [100, 165],
    )
    left = [
        (900, Left(boots[finding.parents[0]], monitors=(boot(64, 36, **{"db:main": 10}),))),
        (901, Left(boots[finding.commits[0]], monitors=(boot(128, 37, **{"db:main": 30}),))),
    ]
    whole = dataclasses.replace(material, records=[*material.records, *left])
    said = " ".join(" ".join(explained_effect.lines(whole, finding)).split())
    assert "programs" not in said and "Of +85" in said
    found = json_report.render(whole)["findings"][0]["functions"]
    assert {one["name"]: one["origin"] for one in found["functions"]}["db:main"] == "user"


def test_several_boots_of_a_commit_count_as_their_mean() -> None:
    material = demo()
    boots = [visit.boot for visit in material.state.boots if visit.commit == material.graph.bad]
    records = [
        (900 + n, Left(boot, monitors=(result({"lock": 10.0 * n, "[user programs]": 4.0}),)))
        for n, boot in enumerate(boots, start=1)
    ]
    found = explained_effect.profile_of(
        dataclasses.replace(material, records=[*material.records, *records]).state,
        material.graph.bad,
        "laptop-icount",
    )
    assert found is not None
    assert found.total == 4.0 + 10.0 * (len(boots) + 1) / 2


@pytest.mark.parametrize(
    ("unit", "clock", "accounts"),
    [
        ("ms", "instructions", True),
        ("instructions", "instructions", True),
        ("misses", "instructions", False),
        ("ops/s", "instructions", False),
        ("s", "wall", False),
    ],
)
def test_only_what_instructions_decide_is_accounted_for_by_them(
    unit: str, clock: TestbedClock, accounts: bool
) -> None:
    material = demo()
    goal = dataclasses.replace(
        material.goal, clock=clock, metric=dataclasses.replace(material.goal.metric, unit=unit)
    )
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    both = counted(material, {finding.parents[0]: {"lock": 100.0}, finding.commits[0]: {"lock": 125.0}})
    said = " ".join(" ".join(explained_effect.lines(dataclasses.replace(both, goal=goal), finding)).split())
    assert ("Functions that account for it" in said) == accounts
    assert ("These are instructions, which need not account for real: it is +19.4" in said) != accounts


@pytest.mark.parametrize(
    ("metric", "functions", "total", "words"),
    [
        ("user-instructions", {"app:main", "[other user code]"}, 60.0, "Functions of programs that account"),
        ("kernel-instructions", {"lock", "[outside of the kernel's own text]"}, 120.0, "of the kernel that"),
        ("instructions", None, 180.0, "Functions that account for it"),
    ],
)
def test_only_functions_whose_instructions_the_metric_counts_account_for_it(
    metric: str, functions: set[str] | None, total: float, words: str
) -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    before = {"app:main": 40.0, "[other user code]": 20.0, "lock": 100.0, "lock < write": 100.0}
    before["[outside of the kernel's own text]"] = 20.0
    both = counted(material, {finding.parents[0]: before, finding.commits[0]: {**before, "lock": 125.0}})
    deciding = counted_metric(metric).metric()
    both = dataclasses.replace(both, goal=dataclasses.replace(both.goal, metric=deciding))
    found = explained_effect.find(both, finding)
    assert found is not None and found.a.total == total
    names = {one.symbol.name for one in found.changes}
    assert names == (functions or before.keys() - {"lock < write"})
    assert found.effect == (0.0 if metric == "user-instructions" else 25.0)
    assert words in text.render(both) and words in bisection_page.render(both)
    rendered = explained_effect.render(both, finding)
    assert rendered is not None and (rendered["of_the_metric"], rendered["totals"][0]) == (True, total)


def test_what_one_function_executes_is_not_accounted_for_by_all() -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    both = counted(material, {finding.parents[0]: {"lock": 100.0}, finding.commits[0]: {"lock": 125.0}})
    metric = counted_metric("instructions.lock").metric()
    one = dataclasses.replace(both, goal=dataclasses.replace(material.goal, metric=metric))
    said = " ".join(" ".join(explained_effect.lines(one, finding)).split())
    assert "Instructions of functions" in said
    assert "which need not account for instructions.lock: it is +19.4" in said


def test_counts_of_different_testbeds_are_not_compared() -> None:
    material = demo()
    assert material.conclusion is not None
    (finding, *_) = material.conclusion.findings
    parent, culprit = finding.parents[0], finding.commits[0]

    def elsewhere(number: int, commit: int, functions: dict[str, float]) -> list[tuple[int, Record]]:
        boot = f"other-{commit}"
        booted = Booted(boot, commit, "other", True, 1.0, 1.0)
        return [(number, booted), (number + 1, Left(boot, monitors=(result(functions),)))]

    here = counted(material, {culprit: {"lock": 100.0}})
    apart = [*here.records, *elsewhere(950, parent, {"lock": 10.0})]
    assert explained_effect.lines(dataclasses.replace(here, records=apart), finding) == []
    both = [*apart, *elsewhere(960, culprit, {"lock": 13.0})]
    said = "\n".join(explained_effect.lines(dataclasses.replace(here, records=both), finding))
    assert "Of +3 instructions a run" in said
