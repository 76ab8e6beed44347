"""What is decided for one testbed depends on the others' trials, and waits for them before it concludes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine.bisection_run import OpenBisection
from bisector.engine.decider import Decider
from bisector.errors import InfrastructureError
from bisector.model.decisions import Conclusion, Decision, Ending, Measure
from bisector.model.state import State
from tests.support import fake_bisection as fake

END = Conclusion(Ending.INCONCLUSIVE, "the script is over")


class Script:
    """A planner that answers what it was given, one answer after the other."""

    def __init__(self, answers: Sequence[Decision]) -> None:
        self.answers = list(answers)

    def next(self, state: State) -> Decision:
        return self.answers.pop(0)


def decider(folder: Path, *answers: Decision) -> tuple[Decider, MemoryStore, str]:
    lab, store = fake.a_lab(), MemoryStore()
    services = fake.services(lab, folder, testbeds=("a", "b"), store=store)
    stored = fake.begin(store, lab, ("a", "b"))
    opened = OpenBisection.take_up(stored, services, lambda event: None, threading.Event())
    return Decider(Script(answers), opened.journal, opened.events), store, stored.id


def measure(commit: int, boot: str | None = None) -> Measure:
    return Measure(commit, 1, "search", "why", boot)


def test_a_conclusion_waits_for_the_trials_of_others(tmp_path: Path) -> None:
    decide, store, name = decider(tmp_path, measure(1), measure(2), END, END)
    assert isinstance(decide.decide("a"), Measure)
    assert isinstance(decide.decide("b"), Measure)
    decide.end("a")
    assert decide.decide("a") is None, "b may still change it"
    assert decide.conclusion is None
    assert len(store.decisions(name)) == 2, "what waits is not written down"
    decide.end("b")
    assert decide.ended_trials == 2
    assert decide.decide("a") == END
    assert decide.conclusion == END
    assert [d for _, d in store.decisions(name)][-1] == END


def test_there_is_one_conclusion(tmp_path: Path) -> None:
    decide, store, name = decider(tmp_path, END, END)
    assert decide.decide("a") == END
    assert decide.decide("b") is None
    assert len(store.decisions(name)) == 1


def test_a_testbed_that_may_not_boot_goes_on_in_its_boot_only(tmp_path: Path) -> None:
    decide, store, name = decider(tmp_path, measure(1, "boot-001"), measure(2), measure(2))
    assert decide.decide("a", may_boot=False) == measure(1, "boot-001")
    decide.end("a")
    assert decide.decide("a", may_boot=False) is None
    assert decide.under_way() == set(), "what was not begun is not under way"
    assert len(store.decisions(name)) == 1
    assert decide.decide("a") == measure(2)
    assert decide.under_way() == {("a", measure(2))}


class Waits:
    """A planner that measures on two testbeds and then concludes; it writes down what it was told."""

    def __init__(self) -> None:
        self.pending: list[tuple[Measure, ...]] = []

    def next(self, state: State) -> Decision:
        self.pending.append(state.pending)
        return measure(1 + len(state.pending)) if len(self.pending) < 4 else END


def test_two_processes_know_each_others_trials(tmp_path: Path) -> None:
    """Also where both decide at once: the later one decides anew."""
    lab, store, planner = fake.a_lab(), MemoryStore(), Waits()
    services = fake.services(lab, tmp_path, testbeds=("b",), store=store)
    stored = fake.begin(store, lab, ("a", "b"))
    opened = OpenBisection.take_up(stored, services, lambda event: None, threading.Event())
    here, there = (Decider(planner, opened.journal, opened.events) for _ in range(2))
    begin = store.begin_trial

    def begin_late(bisection: str, testbed: str, trial: Measure, *, seen: int) -> int | None:
        store.begin_trial = begin  # type: ignore[method-assign]
        assert there.decide("b") == measure(1)
        return begin(bisection, testbed, trial, seen=seen)

    store.begin_trial = begin_late  # type: ignore[method-assign]
    assert here.decide("a") == measure(2)
    assert planner.pending == [(), (), (measure(1),)]
    here.end("a")
    assert here.decide("a") is None, "the trial elsewhere may change the conclusion"
    there.end("b")
    assert here.decide("a") == END
    assert [d for _, d in store.decisions(stored.id)] == [measure(1), measure(2), END]


def test_a_trial_that_is_put_off_may_be_decided_again_and_again(tmp_path: Path) -> None:
    """Its kernel is built meanwhile; without that, a planner that repeats itself is stuck."""
    decide, _, _ = decider(tmp_path, *[measure(1)] * 20)
    for _ in range(10):
        assert decide.decide("a") == measure(1)
        decide.end("a", put_off=True)
    with pytest.raises(InfrastructureError, match="does not move"):
        for _ in range(10):
            decide.decide("a")
            decide.end("a")
