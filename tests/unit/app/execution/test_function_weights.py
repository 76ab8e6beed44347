"""Commits by the functions that both ends execute differently, and a search that knows them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app import bisections
from bisector.app.execution import function_weights
from bisector.app.execution.function_weights import FunctionWeights
from bisector.engine.events import Event
from bisector.errors import InfrastructureError, Interrupted
from bisector.linux import commit_prior
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending
from bisector.model.facts import MonitorResult, MonitorValue, TouchedCode
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, FunctionEvidence, Irrelevant, Left, Record, Weighed
from bisector.model.state import State, fold
from bisector.ports import Monitor, Progress
from bisector.schemas.counted_functions import CALLED_FROM
from bisector.simulation.histories import linear
from bisector.testing.fake_testbed import FakeSession, job
from tests.support import fake_bisection as fake

GRAPH = linear(6)
GOOD, BAD = GRAPH.good, GRAPH.bad
CHANGES: Mapping[int, TouchedCode] = {
    1: TouchedCode(GRAPH.shas[1], frozenset(["same"])),
    2: TouchedCode(GRAPH.shas[2], frozenset(["pipe_read", "same"])),
    3: TouchedCode(GRAPH.shas[3], frozenset(["caller"])),
    4: TouchedCode(GRAPH.shas[4], anything=frozenset(["Kconfig"])),
    5: TouchedCode(GRAPH.shas[5], frozenset(["pipe_read"])),
    BAD: TouchedCode(GRAPH.shas[BAD]),
}


class History:
    """Changes of the test's own."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def of(self, shas: Sequence[str], *, first_parent: bool = False) -> Iterator[TouchedCode]:
        self.asked = list(shas)
        return (CHANGES[GRAPH.shas.index(sha)] for sha in shas)

    def between(self, good: str, bad: str, *, first_parent: bool = False) -> Iterator[TouchedCode]:
        raise AssertionError("only commits that can change the kernel are read")


def boot(commit: int, read: float, testbed: str = "guest", unit: str = "instructions") -> list[Record]:
    seen = (
        MonitorValue("same", 10.0, unit),
        MonitorValue("pipe_read", read, unit),
        MonitorValue(f"pipe_read{CALLED_FROM}caller", read, unit),
        MonitorValue("[user programs]", 5 * read, unit),
    )
    name = f"{testbed}-{commit}"
    return [
        Booted(name, commit, testbed, True, 1.0, 1.0),
        Left(name, monitors=(MonitorResult("counters", seen=seen, unasked=True),)),
    ]


def state(*records: Record, graph: CommitGraph = GRAPH) -> State:
    return fold(graph, Goal(Metric("time", "s", "lower", Threshold(0.05))), records)


BOTH = (*boot(GOOD, 100.0), *boot(BAD, 160.0))


def weights(history: History | None = None, stop: threading.Event | None = None) -> FunctionWeights:
    return FunctionWeights(history or History(), stop or threading.Event())


def test_commits_are_told_by_the_functions_that_they_change() -> None:
    assert weights()(state(*BOTH), print) == FunctionEvidence(differ=(2, 5), call=(3,), elsewhere=(1, BAD))


@pytest.mark.parametrize(
    "records",
    [
        [],
        boot(GOOD, 100.0),
        [*boot(GOOD, 100.0), *boot(3, 160.0)],
        [*boot(GOOD, 100.0), *boot(BAD, 160.0, "another")],  # two machines are compared by nobody
        [*boot(GOOD, 100.0), *boot(BAD, 160.0)[:1]],  # it has not been left yet
        [*boot(GOOD, 100.0, unit="branches"), *boot(BAD, 160.0, unit="branches")],
    ],
)
def test_nothing_is_told_before_one_testbed_has_counted_both_ends(records: list[Record]) -> None:
    history = History()
    assert weights(history)(state(*records), print) is None
    assert history.asked == []


def test_commits_that_cannot_change_the_kernel_are_not_read() -> None:
    history = History()
    found = weights(history)(state(*BOTH, Irrelevant((1, 5), {}, 2)), print)
    assert found == FunctionEvidence(differ=(2,), call=(3,), elsewhere=(BAD,))
    assert history.asked == [GRAPH.shas[commit] for commit in (2, 3, 4, BAD)]


def test_more_commits_than_are_read_soon_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_weights, "MAX_COMMITS", 5)
    history = History()
    with pytest.raises(InfrastructureError, match="6 commits would take too long; 5 are read at most"):
        weights(history)(state(*BOTH), print)
    assert history.asked == []
    assert weights()(state(*BOTH, Irrelevant((1,), {}, 2)), print) is not None


def test_who_is_told_to_stop_reads_no_further() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Interrupted):
        weights(stop=stop)(state(*BOTH), print)


def test_it_is_told_how_far_the_reading_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    weights()(state(*BOTH), said.append)
    assert said == [], "it took no time"
    monkeypatch.setattr(function_weights, "_TOLD_SECONDS", -1.0)
    weights()(state(*BOTH), said.append)
    assert said[0] == "reading what commits change: 1 of 6"
    assert len(said) == 6


def search(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    functions: Callable[[State, Progress], FunctionEvidence | None],
) -> tuple[Conclusion, list[int], list[Event]]:
    """Return the end of a search on fakes, the commits that it booted for itself, and its events."""
    lab, events = fake.a_lab(), list[Event]()

    def count(session: FakeSession, monitor: Monitor) -> MonitorResult:
        slow = 160.0 if session._boot.commit >= fake.CULPRIT else 100.0
        return MonitorResult(monitor.name, seen=(MonitorValue("pipe_read", slow, "instructions"),))

    def weigh(
        graph: CommitGraph, irrelevant: Collection[int], told: FunctionEvidence | None
    ) -> Weighed:  # git tells nothing of a fake history
        shas = graph.shas[1:]
        seen = {} if told is None else {graph.shas[commit]: 8.0 for commit in told.differ}
        weights, named = commit_prior.weigh(shas, dict.fromkeys(shas, ()), "x86_64", seen=seen)
        return Weighed(tuple(range(1, len(graph.shas))), tuple(weights), named, told)

    monkeypatch.setattr(FakeSession, "run_monitor", count)
    services = replace(
        fake.services(lab, folder),
        make_job=lambda path: replace(job(path), monitors=(Monitor("counters", ()),)),
        irrelevant=lambda graph: Irrelevant((), {}, 2),
        weigh=weigh,
        functions=functions,
    )
    stored = fake.begin(services.store, lab)
    conclusion = bisections.run(stored, services, events.append, threading.Event())
    records = [record for _, record in services.store.records(stored.id)]
    booted = [r.commit for r in records if isinstance(r, Booted) and r.purpose == "search"]
    return conclusion, booted, events


def changed_by(commit: int) -> FunctionWeights:
    """Return what is told of a history in which one commit changes the function that differs."""
    shas = fake.a_lab().graph.shas

    class OneChange(History):
        def of(self, asked: Sequence[str], *, first_parent: bool = False) -> Iterator[TouchedCode]:
            return (TouchedCode(sha, frozenset(["pipe_read"] * (sha == shas[commit]))) for sha in asked)

    return FunctionWeights(OneChange(), threading.Event())


def test_a_search_asks_first_where_the_function_that_differs_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, without, _ = search(tmp_path / "without", monkeypatch, lambda *_: None)
    known, booted, events = search(tmp_path / "with", monkeypatch, changed_by(fake.CULPRIT))
    misled, wrong, _ = search(tmp_path / "misled", monkeypatch, changed_by(3))
    for conclusion in (plain, known, misled):
        assert conclusion.ending is Ending.CULPRIT
        assert [finding.commits for finding in conclusion.findings] == [(fake.CULPRIT,)]
    assert booted[0] in (fake.CULPRIT - 1, fake.CULPRIT)
    assert without[0] not in (fake.CULPRIT - 1, fake.CULPRIT)
    assert len(booted) < len(without)
    assert len(wrong) <= len(without) + 1
    (told,) = [event.text for event in events if "functions" in event.text]
    assert told.endswith("1 changes or calls one; this trial is decided anew")
