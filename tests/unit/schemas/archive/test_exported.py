"""The documents of an exported bisection: read as text that anybody may have written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisector.errors import RequestError
from bisector.model.decisions import Conclusion, Ending, Finding, Interval, Measure
from bisector.model.facts import KernelFacts, MonitorResult
from bisector.model.records import (
    Booted,
    Built,
    Discarded,
    FunctionEvidence,
    Irrelevant,
    Left,
    Marked,
    Ran,
    Record,
    RunFailed,
    SetAside,
    Weighed,
)
from bisector.model.stored_bisection import Stored
from bisector.schemas import serialization
from bisector.schemas.archive import exported
from tests.support import fake_bisection

LAB = fake_bisection.a_lab()
EVENTS: list[Record | Measure] = [
    Measure(1, 2, "verify", "why", suspects=((3, 0.5),)),
    Built(1, True, 60.0, binary="a"),
    Booted("boot-001", 1, "fake", True, 10.0, 100.0),
    Ran("boot-001", 0, {"real": 0.1 + 0.2}, 2.0, 102.0),
    Marked(4, "bad", "seen"),
    Irrelevant((2, 3), {"a header": 1}, 2),
    Weighed((1, 4), (0.5, 1.5), 1),
    Weighed((1, 4), (0.6, 1.4), 1, FunctionEvidence((4,), (), (1,))),
    SetAside("fake", "no power", 110.0),
]
ENDED = Conclusion(Ending.CULPRIT, "found", (Finding((3,), Interval(0.1, 0.2, 0.3), 0.99, (2,), True),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    request = fake_bisection.accepted(LAB).model_dump_json()
    stored = Stored("fake-1", 5.5, request, "done", LAB.graph, ENDED)
    exported.write(tmp_path, stored, EVENTS, "1.0")
    assert exported.read(tmp_path) == (stored, EVENTS)
    return tmp_path


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


HEADS: dict[str, dict[str, Any]] = {
    "a later format": {"format": 2},
    "an id that leads elsewhere": {"id": "../../etc"},
    "an id with a slash": {"id": "a/b"},
    "an empty id": {"id": ""},
    "a key that nobody knows": {"more": 1},
    "a status that nobody knows": {"status": "removing"},
    "a request that is none": {"request": {"repo": 1}},
    "done without a conclusion": {"conclusion": None},
    "a conclusion that is none": {"conclusion": {"type": "Built"}},
    "not done with a conclusion": {"status": "running"},
    "a level out of range": {
        "conclusion": {
            "type": "Conclusion",
            "ending": "culprit",
            "summary": "",
            "levels": [[10**6, {"low": 0, "estimate": 0, "high": 0}]],
        }
    },
    "a culprit out of range": {
        "conclusion": {
            "type": "Conclusion",
            "ending": "culprit",
            "summary": "",
            "findings": [
                {"commits": [10**6], "effect": {"low": 0, "estimate": 0, "high": 0}, "confidence": 1}
            ],
        }
    },
}


@pytest.mark.parametrize("values", HEADS.values(), ids=HEADS)
def test_a_head_that_is_wrong_is_refused(folder: Path, values: dict[str, Any]) -> None:
    change(folder / exported.HEAD, **values)
    with pytest.raises(RequestError, match=r"bisection.json") as caught:
        exported.read(folder)
    assert caught.value.cure


GOALS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no metric": lambda goal: goal.pop("metric"),
    "no threshold": lambda goal: goal["metric"].update(threshold=[]),
    "a unit that is a list": lambda goal: goal["metric"].update(unit=[[]]),
    "a budget of text": lambda goal: goal["budget"].update(runs="many"),
}


@pytest.mark.parametrize("spoil", GOALS.values(), ids=GOALS)
def test_a_goal_that_no_command_could_read_is_refused(
    folder: Path, spoil: Callable[[dict[str, Any]], Any]
) -> None:
    """It was imported, and then every command that shows it ended as a defect of perfbisect."""
    request = json.loads((folder / exported.HEAD).read_text())["request"]
    spoil(request["goal"])
    change(folder / exported.HEAD, request=request)
    with pytest.raises(RequestError, match=r"bisection.json.*'Goal' cannot be read"):
        exported.read(folder)


@pytest.mark.parametrize("created", [1e13, -1e18, -1.0, 253_402_300_800.0])
def test_a_time_that_no_calendar_has_is_named_with_line_and_key(folder: Path, created: float) -> None:
    path = folder / exported.HEAD
    path.write_text(re.sub(r'"created": .*,', f'"created": {created},', path.read_text()))
    with pytest.raises(
        RequestError, match=r"bisection.json:5: key 'created': must be a time: .*\(got "
    ) as caught:
        exported.read(folder)
    assert "9999" in caught.value.message
    assert "export it again" in caught.value.cure


def test_texts_and_times_of_a_request_are_those_that_one_may_have(folder: Path) -> None:
    path = folder / exported.HEAD
    head = json.loads(path.read_text())

    def refuse_request(values: dict[str, Any], why: str) -> None:
        change(path, request={**head["request"], **values})
        with pytest.raises(RequestError, match=rf"bisection.json:\d+: key 'request\.{why}"):
            exported.read(folder)

    own = head["request"]["request"]
    refuse_request({"version": "v" * 10_001}, r"version': must have at most 10,000 characters \(got 10,001\)")
    refuse_request({"workload": "w" * 256}, r"workload': no workload has a name of more than 255")
    refuse_request(
        {"request": {**own, "workload": f"/a/{'w' * 256}/b"}}, r"request.workload': no workload has"
    )
    kernel = {
        "id": "a",
        "files": [],
        "sums": [],
        "package": "p",
        "version": "1",
        "release": "6",
        "built": "b",
    }
    refuse_request({"kernels": [{**kernel, "when": 1e13}]}, "kernels.0.when': must be a time")
    night = {"series": "s", "begun": -1e15, "number": 1}
    refuse_request({"night": night}, "night.begun': must be a time")
    change(path, request={**head["request"], "workload": "/".join(["w" * 255] * 16)})
    assert exported.read(folder)


def test_texts_that_are_longer_than_any_that_is_written_are_cut(folder: Path) -> None:
    path, long = folder / exported.EVENTS, "x" * 30_000
    booted = Booted("boot-002", 1, "fake", False, 1.0, 1.0, failure=long, details=long, facts={"uname": long})
    marked = Marked(1, "bad", "n" * 4096)
    path.write_text("".join(f"{json.dumps(serialization.to_json(one))}\n" for one in (booted, marked)))
    conclusion = replace(ENDED, summary=long, warnings=(long,))
    change(folder / exported.HEAD, conclusion=serialization.to_json(conclusion))
    change(folder / exported.GRAPH, untestable={"1": long})
    stored, (got, note) = exported.read(folder)
    assert isinstance(got, Booted) and stored.conclusion is not None
    short = [got.failure, got.facts["uname"], stored.conclusion.summary, *stored.conclusion.warnings]
    assert {len(text) for text in short} == {5000} and all(text.endswith("x ...") for text in short)
    assert len(got.details) == 20_000
    assert len(stored.graph.untestable[1]) == 300
    assert note == marked, "as long as an argument can be"


GRAPHS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a child before its parent": lambda g: {"parents": [[1], *g["parents"][1:]]},
    "a parent below zero": lambda g: {"parents": [*g["parents"][:-1], [-1]]},
    "fewer parents": lambda g: {"parents": g["parents"][:-1]},
    "fewer candidates": lambda g: {"candidate": g["candidate"][:-1]},
    "an id twice": lambda g: {"shas": [g["shas"][0], *g["shas"][:-1]]},
    "an id that is none": lambda g: {"shas": ["--upload-pack=x", *g["shas"][1:]]},
    "good out of range": lambda g: {"good": len(g["shas"])},
    "bad below zero": lambda g: {"bad": -1},
    "a merge base out of range": lambda g: {"merge_bases": [999]},
    "an untestable commit out of range": lambda g: {"untestable": {"999": "x"}},
    "a weight out of range": lambda g: {"weights": {"-1": 1.0}},
    "a text for a list": lambda g: {"parents": "x"},
}


@pytest.mark.parametrize("made", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_that_does_not_fit_together_is_refused(
    folder: Path, made: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    path = folder / exported.GRAPH
    change(path, **made(json.loads(path.read_text())))
    with pytest.raises(RequestError, match=r"graph.json"):
        exported.read(folder)


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "Nothing"}',
        '{"type": "Built"}',
        "[]",
        "no JSON",
        '{"type": "Marked", "commit": 1, "commit": 2, "verdict": "bad"}',
        '{"type": "Marked", "commit": 1000, "verdict": "bad"}',
        '{"type": "Marked", "commit": -1, "verdict": "bad"}',
        '{"type": "Irrelevant", "commits": [1, 1000], "kept": {}, "builds": 1}',
        '{"type": "Weighed", "commits": [1, 1000], "weights": [1, 1], "named": 0}',
        '{"type": "Weighed", "commits": [1, 2], "weights": [1], "named": 0}',
        '{"type": "Weighed", "commits": [1, 2], "weights": [1, 0], "named": 0}',
        '{"type": "Weighed", "commits": [1, 2], "weights": [1, -1], "named": 0}',
        '{"type": "Weighed", "commits": [1, 2], "weights": [1, 1e999], "named": 0}',
        '{"type": "Weighed", "commits": [1, 2], "weights": [1, NaN], "named": 0}',
        '{"type": "Weighed", "commits": [1], "weights": [1], "named": 0, '
        '"functions": {"differ": [], "call": [], "elsewhere": [1000]}}',
        '{"type": "Measure", "commit": 1, "runs": 1, "purpose": "search", "reason": "", '
        '"suspects": [[999, 1]]}',
        '{"type": "Conclusion", "ending": "culprit", "summary": "", "levels": '
        '[[-1, {"low": 0, "estimate": 0, "high": 0}]]}',
    ],
)
def test_an_event_that_is_wrong_is_named_with_its_line(folder: Path, line: str) -> None:
    with (folder / exported.EVENTS).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(RequestError, match=r"events.jsonl.*10"):
        exported.read(folder)


@pytest.mark.parametrize("name", [exported.GRAPH, exported.EVENTS])
def test_a_document_that_is_too_large_is_not_read(folder: Path, name: str) -> None:
    size = (folder / name).stat().st_size
    assert exported.read(folder, {**exported.MAX_BYTES, name: size})
    with pytest.raises(RequestError, match=rf"{name}: larger than"):
        exported.read(folder, {**exported.MAX_BYTES, name: size - 1})


def test_an_event_that_is_too_large_is_not_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported, "_MAX_EVENT_BYTES", 1000)
    with (folder / exported.EVENTS).open("a") as file:
        file.write("[" + "[]," * 400 + "[]]\n")
    with pytest.raises(RequestError, match=r"events.jsonl: line 10: larger than"):
        exported.read(folder)


NO_NAMES = ("/etc", "/var/lib/perfbisect", "..", ".", "", "a/b", "../x", "facts", "boot-001/..", "boot-001\n")


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_boot_is_named_as_the_journal_names_boots(folder: Path, name: str) -> None:
    for event in (
        Booted(name, 1, "fake", True, 10.0, 100.0),
        Ran(name, 0, {}, 2.0, 102.0),
        RunFailed(name, "crash"),
        Left(name),
        Discarded("boot", name),
        Measure(1, 2, "verify", "why", boot=name),
    ):
        refuse(folder, event, "is no name of a boot")


@pytest.mark.parametrize("name", ["/etc", "..", ".", "", "a/b", "fake\n"])
def test_testbeds_and_kernels_are_named_without_a_path(folder: Path, name: str) -> None:
    for event in (
        Booted("boot-002", 1, name, True, 10.0, 100.0),
        SetAside(name, "no power", 110.0),
        Discarded("testbed", name),
        Measure(1, 2, "verify", "why", testbed=name),
    ):
        refuse(folder, event, "is no name of a testbed")
    if name:  # earlier versions recorded no key
        refuse(folder, Built(1, True, 6.0, kernel=KernelFacts(key=name)), "is no name of a kernel")


@pytest.mark.parametrize("wrong", [-7, 20_000, 3 * 10**8, 10**30])
def test_a_run_has_a_number_that_a_boot_can_reach(folder: Path, wrong: int) -> None:
    refuse(
        folder, Ran("boot-001", wrong, {"real": 1.0}, 1.0, 1.0), "key 'index': must be from 0 to 19,999 .got"
    )


@pytest.mark.parametrize("at", [1e13, -1e15, -1.0])
def test_events_happen_at_times_that_calendars_have(folder: Path, at: float) -> None:
    for event in (
        Booted("boot-002", 1, "fake", True, 10.0, at),
        Ran("boot-001", 0, {"real": 1.0}, 1.0, at),
        SetAside("fake", "no power", at),
    ):
        refuse(folder, event, "key 'at': must be a time: seconds since 1970, of a year up to 9999 .got")


def test_other_numbers_of_events_are_bounded(folder: Path) -> None:
    wrong: dict[str, Record | Measure] = {
        "seconds": Built(1, True, -1e99),
        "layout": Built(1, True, 1.0, layout=10**30),
        "overhead": Booted("boot-002", 1, "fake", True, 10.0, 1.0, overhead=-1e99),
        "left": Measure(1, 2, "search", "why", left=1e99),
        "runs": Measure(1, -1, "search", "why"),
        "builds": Irrelevant((1,), {}, -1),
        "named": Weighed((1,), (1.0,), 10**30),
        "monitors.1.seconds": Left(
            "boot-001", monitors=(MonitorResult("a"), MonitorResult("b", seconds=1e99))
        ),
    }
    for key, event in wrong.items():
        refuse(folder, event, f"key '{key}': must be from")
    latest = Ran("boot-001", 19_999, {"real": 1e100}, 1e9, 253_402_214_400.0)
    (folder / exported.EVENTS).write_text(json.dumps(serialization.to_json(latest)))
    assert exported.read(folder)[1] == [latest]


def refuse(folder: Path, event: Record | Measure, why: str) -> None:
    path = folder / exported.EVENTS
    before = path.read_text()
    path.write_text(f"{before}{json.dumps(serialization.to_json(event))}\n")
    with pytest.raises(RequestError, match=rf"events.jsonl: line {len(EVENTS) + 1}: (.* )?{why}"):
        exported.read(folder)
    path.write_text(before)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([exported.HEAD, exported.GRAPH, exported.EVENTS]), st.integers(0), st.binary(max_size=4)
)
def test_whatever_is_changed_it_is_read_or_refused(folder: Path, name: str, at: int, by: bytes) -> None:
    path = folder / name
    before = path.read_bytes()
    at %= len(before)
    path.write_bytes(before[:at] + by + before[at + 2 :])
    try:
        exported.read(folder)
    except RequestError as error:
        assert error.cure
    finally:
        path.write_bytes(before)
