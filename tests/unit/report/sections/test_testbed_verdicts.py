"""The report's words where testbeds disagree."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.app import bisections
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, SetAside
from bisector.report import json_report, text
from bisector.report.report_model import Material
from bisector.report.sections import testbed_verdicts
from bisector.search.testbeds.testbed_effects import Shown, TestbedEffect, TestbedEffects
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import SyntheticLab
from bisector.testing.fake_testbed import FakeTestbed
from bisector.testing.fakes import METRIC
from tests.support import fake_bisection as fake
from tests.support.expected import check
from tests.support.report_material import CULPRIT, GRAPH, W1, W2, differing_records


def material(of: Mapping[str, tuple[float, float]], threshold: float = 0.03) -> Material:
    found = [*differing_records(of), SetAside("spare", "no power", 1e9)]
    finding = Finding((CULPRIT,), Interval(0.02, 0.04, 0.06), 0.97, (CULPRIT - 1,), certified=True)
    return Material(
        id="fake-1",
        created=1e9,
        status="done",
        request={},
        graph=GRAPH,
        goal=Goal(Metric(METRIC, "s", "lower", Threshold(threshold))),
        conclusion=Conclusion(Ending.CULPRIT, "Proven.", (finding,)),
        records=list(enumerate(found, start=1)),
        decisions=(),
    )


def words(of: Mapping[str, tuple[float, float]]) -> str:
    return " ".join(" ".join(testbed_verdicts.lines(material(of))).split())


@pytest.mark.parametrize("name", ["w1", "w2"])
def test_three_machines_word_for_word(name: str) -> None:
    lines = testbed_verdicts.lines(material({"w1": W1, "w2": W2}[name]))
    assert all(len(line) <= 78 for line in lines)
    check(f"report-testbeds-{name}.txt", "\n".join(lines) + "\n")


def test_a_disagreement_in_direction_is_told_before_not_reproduced() -> None:
    said = words({"a": (6.0, 0.3), "b": (0.0, 0.3), "c": (-6.0, 0.3)})
    assert "DISAGREE IN DIRECTION: c against the others" in said
    assert said.endswith("spare, 2001-09-09 01:46 UTC: no power")
    assert "DISAGREE: not reproduced" not in said


def test_where_to_search_when_one_machine_does_not_show_it() -> None:
    said = words({"machine-a": (6.0, 0.3), "machine-b": (0.0, 0.3)})
    assert "THE TESTBEDS DISAGREE: not reproduced on machine-b (p < 0.001)" in said
    assert "To search where it shows: --testbed machine-a" in said


def test_json_has_the_numbers_and_the_terminal_shows_the_verdict() -> None:
    found = json.loads(json.dumps(json_report.render(material(W1))))
    assert [row["disagree"] for row in found["by_testbed"]] == [True, True]
    assert {one["testbed"] for one in found["by_testbed"][1]["testbeds"]} == set(W1)
    assert found["set_aside"] == [{"testbed": "spare", "failure": "no power", "at": 1e9}]
    assert "THE TESTBEDS DISAGREE" in "\n".join(text.summary(material(W1)))


NAMED = replace(GRAPH, shas=tuple(f"{i:x}" * 40 for i in range(1, len(GRAPH.shas) + 1)))
"""Commits whose short names differ."""


def proof(parent: int, culprit: int, *, certified: bool = True, more: int = 0) -> Material:
    """Return two machines that disagree about a finding, measured once more on the parent's side.

    more: commits behind the culprit that cannot be told from it, of which the last was measured.
    """
    moved = {CULPRIT - 1: parent, CULPRIT: culprit + more}
    records = []
    for record in differing_records({"a": (6.0, 0.3), "b": (0.0, 0.3)}):
        if isinstance(record, Booted) and record.purpose == "certify":
            record = replace(record, commit=moved[record.commit])
        records.append(record)
    thrice = differing_records({"a": (6.0, 0.3)}, boots=3)
    third = [one for one in thrice if "-4-2" in getattr(one, "boot", "")]
    assert CULPRIT - 1 == 4 and len(third) == 7, "the third boot of the parent, its five runs and its end"
    records += [replace(one, commit=parent) if isinstance(one, Booted) else one for one in third]
    commits = (culprit, *range(culprit + 1, culprit + 1 + more))
    finding = Finding(commits, Interval(0.02, 0.04, 0.06), 0.97, (parent,), certified=certified)
    return replace(
        material({}),
        graph=NAMED,
        conclusion=Conclusion(Ending.CULPRIT, "Proven.", (finding,)),
        records=list(enumerate(records, start=1)),
    )


@pytest.mark.parametrize(
    ("parent", "culprit"), [(4, 5), (GRAPH.good, 1), (GRAPH.bad - 1, GRAPH.bad), (GRAPH.good, GRAPH.bad - 1)]
)
def test_a_proof_names_the_culprit_then_its_parent(parent: int, culprit: int) -> None:
    found = proof(parent, culprit)
    said = "\n".join(testbed_verdicts.lines(found))
    names = f"{str(culprit + 1) * 12} against its parent {str(parent + 1) * 12}"
    assert said.count("On each testbed: ") == 2 and "On each testbed: Good to bad" in said
    assert f"On each testbed: {names}\n" in said
    told = testbed_verdicts.render(found)
    ends = [(NAMED.shas[GRAPH.good], NAMED.shas[GRAPH.bad]), (NAMED.shas[parent], NAMED.shas[culprit])]
    assert [(one["from"], one["to"]) for one in told] == ends
    assert told[1]["testbeds"][0]["boots"] == (3, 2)
    assert " 3 + 2 boots: reproduced" in " ".join(said.split())


def test_of_commits_that_cannot_be_told_apart_the_last_is_named() -> None:
    assert f"{'8' * 12} against its parent {'5' * 12}" in "\n".join(
        testbed_verdicts.lines(proof(4, 5, more=2))
    )


def test_what_is_not_proven_shows_no_proof() -> None:
    said = "\n".join(testbed_verdicts.lines(proof(4, 5, certified=False)))
    assert said.count("On each testbed: ") == 1


def shown(**testbeds: tuple[Shown, float]) -> TestbedEffects:
    """Return what testbeds show: the word, and the estimate as a fraction; they differ beyond chance."""
    each = [
        TestbedEffect(name, Interval(size - 0.01, size, size + 0.01), word, (2, 2))
        for name, (word, size) in testbeds.items()
    ]
    return TestbedEffects(tuple(each), 1e-4, 0.05)


def agreed(effects: TestbedEffects, *searched: str) -> str:
    found = material({})
    assert found.conclusion is not None
    return testbed_verdicts.agreement(
        replace(found, conclusion=replace(found.conclusion, searched_on=searched)), effects
    )


def test_testbeds_that_all_show_it_differ_in_size_and_none_is_named_to_search_on() -> None:
    said = agreed(shown(a=("reproduced", 0.06), b=("reproduced", 0.2)))
    assert said.startswith("The testbeds differ in the size of the change (p < 0.001).")
    assert "--testbed" not in said
    assert "size of the change" in agreed(shown(a=("opposite", -0.06), b=("opposite", -0.2)))


def test_testbeds_too_noisy_to_tell_are_said_to_show_nothing_else() -> None:
    """One that may show it is no reason to say that they disagree about it."""
    effects = shown(a=("reproduced", 0.06), b=("open", 0.01))
    assert agreed(effects).startswith("The testbeds differ in the size of the change")
    assert "too few boots there to tell" in testbed_verdicts.row(material({}), effects.each[1])


def test_where_none_shows_it_nobody_is_told_where_to_search() -> None:
    said = agreed(shown(a=("small", 0.02), b=("none", 0.001)))
    assert said.startswith("The testbeds differ in the size of the change") and "--testbed" not in said


def test_directions_that_chance_could_explain_are_told_with_their_p() -> None:
    effects = replace(shown(a=("reproduced", 0.06), b=("opposite", -0.04)), p=0.2)
    assert agreed(effects).startswith("THE TESTBEDS DISAGREE IN DIRECTION: b against the others (p 0.2).")
    effects = replace(shown(a=("reproduced", 0.06), b=("none", 0.0)), p=0.2)
    assert agreed(effects) == "The testbeds do not differ by more than chance."


def test_one_testbed_needs_no_section() -> None:
    assert "On each testbed" not in words({"a": (6.0, 0.3)})


def test_a_bisection_on_machines_that_disagree_ends_and_its_report_says_which(tmp_path: Path) -> None:
    effects = {"machine-a": 6.0, "machine-b": 0.0}
    labs = {
        name: SyntheticLab(linear(fake.COMMITS), fake.QUIET, {fake.CULPRIT: effect}, seed=1)
        for name, effect in effects.items()
    }
    store = MemoryStore()
    services = fake.services(labs["machine-a"], tmp_path, store=store, testbeds=tuple(labs))
    services = replace(services, testbeds={name: FakeTestbed(name, lab) for name, lab in labs.items()})
    stored = fake.begin(store, labs["machine-a"], tuple(labs))
    told: list[str] = []
    conclusion = bisections.run(stored, services, lambda e: told.append(e.text), threading.Event())
    found = Material(
        id=stored.id,
        created=stored.created,
        status="done",
        request={},
        graph=stored.graph,
        goal=Goal(Metric(METRIC, "s", "lower", Threshold(0.05))),
        conclusion=conclusion,
        records=store.records(stored.id),
        decisions=store.decisions(stored.id),
    )
    said = " ".join(text.render(found).split())
    assert "THE TESTBEDS DISAGREE: not reproduced on machine-b" in said
    assert "It was searched where it shows, on machine-a: all else here is of there alone." in said
    where = "The change is shown on machine-a, not on machine-b: searched on machine-a."
    assert where in conclusion.summary
    assert where in said
    assert conclusion.findings[0].commits == (fake.CULPRIT,)
    assert f"the testbed 'machine-b' is not needed any more. {where}" in told
    boots = [r for _, r in store.records(stored.id) if isinstance(r, Booted) and r.purpose != "verify"]
    assert {boot.testbed for boot in boots} == {"machine-a"}
