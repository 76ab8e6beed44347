"""What each record changes in the state, clause by clause, and that the order of folding does not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.model.decisions import Measure
from bisector.model.facts import MonitorResult
from bisector.model.goal import Goal, Metric, Threshold
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
from bisector.model.state import IRRELEVANT_WEIGHT, Costs, State, apply, extend, fold
from bisector.simulation.histories import linear

GOAL = Goal(Metric("m", "s", "lower", Threshold(0.05)))
GRAPH = linear(5)
KINDS = ("build", "boot", "run", "run", "run", "fail", "left", "mark", "discard")

BOOT = Booted("b1", 2, "a", True, 7.0, 100.0)
OTHER = Booted("b2", 3, "b", True, 8.0, 200.0)


def ran(value: float, *, boot: str = "b1", index: int = 0, **more: object) -> Ran:
    return Ran(boot, index, {"m": value}, 2.0, 101.0 + index, **more)  # type: ignore[arg-type]


def state_of(*records: Record) -> State:
    return fold(GRAPH, GOAL, records)


CLAUSES: list[tuple[str, list[Record], Callable[[State], object], object]] = [
    ("a build gives a binary", [Built(2, True, 9.0, "k")], lambda s: s.binaries, {(2, 0): "k"}),
    ("a build costs", [Built(2, True, 9.0, "k")], lambda s: s.costs.builds, (9.0,)),
    (
        "one from the cache costs nothing",
        [Built(2, True, 9.0, "k", cached=True)],
        lambda s: s.costs.builds,
        (),
    ),
    ("a failed build", [Built(2, False, 9.0, failure="x")], lambda s: s.untestable, {2: "does not build: x"}),
    ("a failed layout is no skip", [Built(2, False, 9.0, layout=1)], lambda s: s.untestable, {}),
    ("a failed layout ends layouts", [Built(2, False, 9.0, layout=1)], lambda s: s.no_layouts, True),
    ("a good layout does not", [Built(2, True, 9.0, "k", layout=1)], lambda s: s.no_layouts, False),
    ("a boot is a visit", [BOOT], lambda s: [(v.boot, v.live) for v in s.visits], [("b1", True)]),
    ("a boot costs", [BOOT], lambda s: s.costs.boots, (7.0,)),
    (
        "a failed boot",
        [Booted("b1", 2, "a", False, 7.0, 1.0, failure="panic")],
        lambda s: (s.untestable, s.visits, len(s.boots), s.costs.boots, s.boots[0].live),
        ({2: "does not boot: panic"}, (), 1, (), False),
    ),
    ("a run is a sample", [BOOT, ran(1.5)], lambda s: s.visits[0].samples, ((0, 1.5),)),
    ("when it ended", [BOOT, ran(1.5, index=3)], lambda s: s.visits[0].at, (104.0,)),
    ("a run costs", [BOOT, ran(1.5)], lambda s: s.costs.runs, (2.0,)),
    (
        "a warm-up is no sample",
        [BOOT, ran(1.5, warmup=True)],
        lambda s: (s.visits[0].samples, len(s.visits[0].runs), s.costs.runs),
        ((), 1, (2.0,)),
    ),
    (
        "a flagged run is no sample",
        [BOOT, ran(1.5, flags=("warn",))],
        lambda s: (s.visits[0].samples, s.visits[0].flagged),
        ((), ((0, 1.5),)),
    ),
    (
        "another metric is no sample",
        [BOOT, Ran("b1", 0, {"n": 1.0}, 2.0, 3.0)],
        lambda s: (s.visits[0].samples, len(s.visits[0].runs)),
        ((), 1),
    ),
    ("a run of no boot only costs", [ran(1.5)], lambda s: (s.visits, s.costs.runs), ((), (2.0,))),
    (
        "a run belongs to its boot",
        [BOOT, OTHER, ran(1.5)],
        lambda s: [len(v.samples) for v in s.visits],
        [1, 0],
    ),
    (
        "a failed run",
        [BOOT, RunFailed("b1", "oops")],
        lambda s: (s.untestable, s.visits[0].live, s.visits[0].failed, s.visits[0].failure),
        ({2: "workload fails: oops"}, False, True, "oops"),
    ),
    ("a failed run of no boot", [RunFailed("b9", "oops")], lambda s: s.untestable, {}),
    ("a boot that was left", [BOOT, Left("b1")], lambda s: s.visits[0].live, False),
    (
        "a boot that was left once it had failed",
        [BOOT, Left("b1", failure="oops")],
        lambda s: (s.untestable, s.visits[0].live, s.visits[0].failed, s.visits[0].failure),
        ({}, False, False, "oops"),
    ),
    ("no boot to leave", [BOOT, Left("b9")], lambda s: s.visits[0].live, True),
    (
        "what monitors saw",
        [BOOT, Left("b1", monitors=(MonitorResult("proc"),))],
        lambda s: s.visits[0].monitors,
        (MonitorResult("proc"),),
    ),
    ("a mark", [Marked(2, "bad", "seen")], lambda s: (s.marks, s.untestable), ({2: "bad"}, {})),
    ("a later mark", [Marked(2, "bad"), Marked(2, "good")], lambda s: s.marks, {2: "good"}),
    (
        "a skip",
        [Marked(2, "skip", "no network")],
        lambda s: (s.marks, s.untestable),
        ({}, {2: "skipped by the user: no network"}),
    ),
    ("a skip without a note", [Marked(2, "skip")], lambda s: s.untestable, {2: "skipped by the user"}),
    (
        "a discarded boot",
        [BOOT, OTHER, ran(1.5), Discarded("boot", "b1")],
        lambda s: ([v.boot for v in s.visits], s.discarded, len(s.boots), s.costs.runs),
        (["b2"], True, 2, (2.0,)),
    ),
    (
        "a discarded testbed",
        [BOOT, OTHER, Discarded("testbed", "b")],
        lambda s: ([v.boot for v in s.visits], s.discarded),
        (["b1"], True),
    ),
    (
        "a boot named as a testbed is none",
        [BOOT, Discarded("testbed", "b1"), Discarded("boot", "a")],
        lambda s: [v.boot for v in s.visits],
        ["b1"],
    ),
    (
        "later boots there",
        [Discarded("testbed", "a"), BOOT, OTHER],
        lambda s: [v.boot for v in s.visits],
        ["b2"],
    ),
    (
        "a discarded boot that failed still says that its commit cannot be tested",
        [BOOT, RunFailed("b1", "oops"), Discarded("boot", "b1")],
        lambda s: (s.visits, s.untestable),
        ((), {2: "workload fails: oops"}),
    ),
    (
        "irrelevant commits",
        [Irrelevant((1, 2), {}, 2), Irrelevant((2, 3), {}, 3)],
        lambda s: dict(s.graph.weights),
        {2: IRRELEVANT_WEIGHT, 3: IRRELEVANT_WEIGHT},
    ),
    (
        "weights of the commits that may change the kernel",
        [
            Irrelevant((1, 2), {}, 2),
            Weighed((3,), (1.5,), 0),
            Irrelevant((2,), {}, 3),
            Weighed((1,), (0.5,), 1),
        ],
        lambda s: dict(s.graph.weights),
        {2: IRRELEVANT_WEIGHT, 3: 1.5, 1: 0.5},
    ),
    (
        "weights that hold what functions tell, over those without",
        [Weighed((1, 3), (1.5, 0.5), 0), Weighed((1, 3), (0.6, 1.4), 0, FunctionEvidence((3,), (), (1,)))],
        lambda s: dict(s.graph.weights),
        {1: 0.6, 3: 1.4},
    ),
    (
        "a testbed that was set aside keeps its data",
        [BOOT, SetAside("a", "no power", 9.0)],
        lambda s: len(s.visits),
        1,
    ),
]


@pytest.mark.parametrize(
    ("records", "look", "expected"), [c[1:] for c in CLAUSES], ids=[c[0] for c in CLAUSES]
)
def test_what_a_record_changes(
    records: list[Record], look: Callable[[State], object], expected: object
) -> None:
    state = state_of(*records)
    assert look(state) == expected
    assert state.records == tuple(records)


def test_what_is_known_beforehand_stays() -> None:
    graph = replace(GRAPH, untestable={4: "no Linux"})
    state = fold(graph, GOAL, [Built(2, False, 1.0, failure="x")])
    assert state.untestable == {4: "no Linux", 2: "does not build: x"}


def test_pending_and_idle_are_of_the_moment() -> None:
    state = extend(state_of(BOOT), (), idle="a")
    assert state.idle == "a"
    assert extend(state, ()).idle is None
    assert apply(state, ran(1.0)).idle == "a"


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    records: list[Record] = []
    boots: list[str] = []
    for n in range(draw(st.integers(0, 40))):
        kind = draw(st.sampled_from(KINDS))
        commit = draw(st.integers(0, 5))
        if kind == "build":
            records.append(Built(commit, draw(st.booleans()), 1.0, f"b{commit}", draw(st.integers(0, 1))))
        elif kind == "boot":
            ok = draw(st.booleans())
            records.append(Booted(f"boot{n}", commit, draw(st.sampled_from("ab")), ok, 1.0, float(n)))
            boots += [f"boot{n}"] if ok else []
        elif kind == "mark":
            records.append(Marked(commit, draw(st.sampled_from(("good", "bad", "skip"))), "why"))
        elif kind == "discard" and draw(st.integers(0, 9)) == 0:
            records.append(Discarded("testbed", "a"))
        elif boots:
            boot = draw(st.sampled_from(boots))
            if kind == "run":
                flags = draw(st.sampled_from(((), ("warn",))))
                values = {draw(st.sampled_from("mn")): draw(st.floats(0, 9))}
                records.append(Ran(boot, n, values, 1.0, float(n), flags, draw(st.booleans())))
            elif kind == "fail":
                records.append(RunFailed(boot, "crash"))
            elif kind == "left":
                records.append(Left(boot))
    return records


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(1, 7))
def test_extending_in_steps_is_folding_at_once(records: list[Record], step: int) -> None:
    state = fold(GRAPH, GOAL, ())
    for i in range(0, len(records), step):
        state = extend(state, records[i : i + step], idle="a")
    assert state == fold(GRAPH, GOAL, records, idle="a" if records else None)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_visits_are_the_boots_that_count(records: list[Record]) -> None:
    state = fold(GRAPH, GOAL, records)
    thrown = any(isinstance(r, Discarded) for r in records)
    counted = [v for v in state.boots if v.booted.ok and not (thrown and v.testbed == "a")]
    assert list(state.visits) == counted
    assert sum(len(v.runs) for v in state.boots) == sum(isinstance(r, Ran) for r in records)


def test_extending_a_state_replaces_what_is_under_way() -> None:
    """A trial that has ended must not count as pending: its testbed's boot could not go on."""
    old, new = Measure(1, 2, "search", ""), Measure(2, 2, "search", "")
    state = extend(fold(GRAPH, GOAL, (), pending=(old,), idle="a"), (), pending=(new,), idle="b")
    assert (state.pending, state.idle) == ((new,), "b")
    assert extend(state, ()).pending == ()


def test_a_bisection_has_cost_all_that_was_done() -> None:
    assert Costs((1.0, 2.0), (10.0, 20.0), (100.0, 200.0)).total == 333.0
    assert Costs().total == 0.0
