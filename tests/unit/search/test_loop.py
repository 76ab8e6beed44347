"""The decision loop: who is asked when, what the others do meanwhile, and when a conclusion counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bisector.model.decisions import Answer, Conclusion, Ending, Measure, Released
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.state import State, fold
from bisector.search.loop import OpenTrials, run_search
from bisector.simulation.histories import linear

STATE = fold(linear(4), Goal(Metric("m", "s", "lower", Threshold(0.05))), ())
END = Conclusion(Ending.INCONCLUSIVE, "enough")


def measure(commit: int) -> Measure:
    return Measure(commit, 1, "search", "why")


class Script:
    """A planner that answers from a list, and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str | None, Sequence[int]]] = []

    def next(self, state: State) -> Answer:
        self.asked.append((state.idle, [m.commit for m in state.pending]))
        return self.answers.pop(0)


def run(planner: Script, testbeds: Sequence[str], ends: Sequence[str], *, finish: bool) -> list[str]:
    """Run the loop; trials end in the order of `ends`. Return what happened."""
    trials, log, order = OpenTrials(), [], list(ends)

    def start(testbed: str, trial: Measure) -> None:
        log.append(f"{testbed} {trial.commit}")

    def wait() -> str | None:
        testbed = order.pop(0)
        lost = testbed.endswith(" lost")
        trials.close(testbed.removesuffix(" lost"))
        return None if lost else testbed

    conclusion = run_search(
        testbeds, lambda t: trials.ask(planner, STATE, t), start, wait, finish_trials=finish
    )
    assert conclusion is END
    return log


def test_each_idle_testbed_is_asked_and_told_what_the_others_do() -> None:
    planner = Script(measure(1), measure(2), measure(3), END)
    assert run(planner, ["a", "b"], ["b", "b"], finish=False) == ["a 1", "b 2", "b 3"]
    assert planner.asked == [("a", []), ("b", [1]), ("b", [1]), ("b", [1])]


def test_a_conclusion_waits_for_trials_under_way_which_may_change_it() -> None:
    planner = Script(measure(1), END, measure(2), END, END)
    log = run(planner, ["a", "b"], ["a", "b", "a"], finish=True)
    assert log == ["a 1", "b 2"]
    assert planner.answers == []


def test_a_testbed_of_no_more_use_is_not_asked_again() -> None:
    planner = Script(measure(1), measure(2), measure(3), END, END)
    log = run(planner, ["a", "b"], ["a lost", "b", "b"], finish=True)
    assert log == ["a 1", "b 2", "b 3"]
    assert planner.asked[2:] == [("b", []), ("b", [])]


def test_a_testbed_that_is_released_is_not_asked_again() -> None:
    planner = Script(Released(("b",), "not shown there"), measure(1), measure(2), END)
    assert run(planner, ["a", "b"], ["b", "b"], finish=False) == ["b 1", "b 2"]
    assert [testbed for testbed, _ in planner.asked] == ["a", "b", "b", "b"]


def test_an_imagined_testbed_does_what_one_that_is_needed_would() -> None:
    planner, trials = Script(measure(1), Released(("b",), ""), measure(2), measure(3)), OpenTrials()
    trials.ask(planner, STATE, "b")
    assert trials.imagine(planner, STATE, "imagined") == measure(2)
    assert trials.imagine(planner, STATE, "other") == measure(3)
    assert planner.asked[2] == ("b", [1])
    assert planner.asked[3] == ("other", [1, 2])


def test_a_conclusion_waits_for_a_testbed_that_then_is_lost() -> None:
    planner = Script(measure(1), END, measure(2), END)
    assert run(planner, ["a", "b"], ["a lost", "b"], finish=True) == ["a 1", "b 2"]


def test_without_that_the_first_conclusion_counts() -> None:
    planner = Script(measure(1), END)
    assert run(planner, ["a", "b"], [], finish=False) == ["a 1"]


def test_a_conclusion_at_once_starts_nothing() -> None:
    assert run(Script(END), ["a", "b"], [], finish=True) == []


def test_the_own_trial_of_a_testbed_is_not_pending_when_it_asks() -> None:
    trials = OpenTrials({"a": measure(1), "b": measure(2)})
    planner = Script(measure(3))
    trials.ask(planner, STATE, "a")
    assert planner.asked == [("a", [2])]
    assert {name: trial.commit for name, trial in trials.by_testbed.items()} == {"a": 3, "b": 2}


def test_closing_what_is_not_open_is_no_error() -> None:
    trials = OpenTrials()
    trials.close("a")
    assert not trials.by_testbed


def test_an_error_of_a_trial_ends_the_loop() -> None:
    def wait() -> str:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        run_search(["a"], lambda _: measure(1), lambda *_: None, wait, finish_trials=True)
