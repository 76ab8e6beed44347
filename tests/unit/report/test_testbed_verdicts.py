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
from bisector.report import json_report, testbed_verdicts, text
from bisector.report.report_model import Material
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
