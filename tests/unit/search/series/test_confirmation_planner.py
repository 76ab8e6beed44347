"""How a confirmation ends, as the conclusion of a bisection."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.goal import Budget, Find, Goal, Metric, TestbedClock, Threshold
from bisector.model.state import fold
from bisector.search.series import confirmation_planner
from bisector.search.series.confirmation_planner import ConfirmationPlanner
from bisector.search.series.suspect_test import SuspectVerdict
from bisector.stats.variance_components import VarianceComponents
from tests.support.searching import Seen, drive, goal, linear, make_evidence, records_of

GRAPH = linear(1)
NOISE = VarianceComponents(0.003, 100.0, 0.003, 40.0)


def confirm(effect: float, find: Find = "regression", **more: object) -> Conclusion:
    """Return the end for a tip that reads higher by `effect`."""
    random = np.random.default_rng(1)
    wanted = Goal(Metric("real", "s", "lower", Threshold(0.01)), find=find, **more)  # type: ignore[arg-type]

    def value(commit: int, run: int) -> float:
        return float(100 * (1 + effect * commit) * (1 + 0.003 * random.standard_normal()))

    return drive(GRAPH, wanted, value, planner=ConfirmationPlanner(NOISE))[0]


@pytest.mark.parametrize(
    ("effect", "find", "ending"),
    [
        (0.05, "regression", Ending.CONFIRMED),
        (0.0, "regression", Ending.REJECTED),
        (-0.05, "regression", Ending.REJECTED),
        (-0.05, "fix", Ending.CONFIRMED),
        (0.05, "fix", Ending.REJECTED),
    ],
)
def test_the_ending_and_the_change_of_the_metric(effect: float, find: Find, ending: Ending) -> None:
    end = confirm(effect, find)
    assert end.ending is ending
    assert end.total is not None
    assert end.total.low <= effect <= end.total.high
    assert (end.confidence == 0.99) == (ending is Ending.CONFIRMED)
    assert re.search(r"\b\d+ and \d+ boots\b", end.summary)


def test_it_knows_the_noise_of_the_nights_and_warns_as_a_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def decided(*arguments: object) -> SuspectVerdict:
        given.append(arguments[2])
        return SuspectVerdict(
            "undecided", make_evidence(0.0, 0.0, 0.0, 0.02, 0.04, 0.01, 0.9), "4 and 4 boots"
        )

    monkeypatch.setattr(confirmation_planner, "next_step", decided)
    monkeypatch.setattr(confirmation_planner, "warnings", lambda *_: ("the clock jumped",))
    boots = [Seen(commit, purpose="verify") for commit in (0, 1)]
    end = ConfirmationPlanner(NOISE).next(fold(GRAPH, goal(), records_of(boots)))
    assert isinstance(end, Conclusion)
    assert (given, end.warnings) == ([NOISE], ("the clock jumped",))


@pytest.mark.parametrize(
    ("effect", "find", "said"),
    [
        (0.0, "regression", "did not become worse by the threshold: "),
        (-0.05, "regression", "did not become worse by the threshold, but better: -5."),
        (0.05, "fix", "did not become better by the threshold, but worse: +4."),
    ],
)
def test_what_moved_the_other_way_is_not_said_to_stay(effect: float, find: Find, said: str) -> None:
    assert confirm(effect, find).summary.startswith(f"The level {said}")


def test_a_budget_leaves_it_undecided() -> None:
    end = confirm(0.05, budget=Budget(runs=4))
    assert (end.ending, end.total) == (Ending.INCONCLUSIVE, None)
    assert "The budget of 4 runs leaves no room for the next trial" in end.summary


def test_a_commit_that_cannot_be_measured_leaves_it_undecided() -> None:
    wanted = Goal(Metric("real", "s", "lower", Threshold(0.01)))
    end = drive(GRAPH, wanted, lambda *_: 1.0, planner=ConfirmationPlanner(), unbuildable=[1])[0]
    assert end.ending is Ending.INCONCLUSIVE
    assert "does not build" in end.summary


def test_so_far_tells_that_it_goes_on() -> None:
    wanted = Goal(Metric("real", "s", "lower", Threshold(0.01)))
    end = ConfirmationPlanner().so_far(fold(GRAPH, wanted, ()))
    assert end.summary == "The confirmation has not ended."


@pytest.mark.parametrize("clock", ["wall", "instructions"])
def test_boots_have_other_random_numbers_where_runs_of_an_exact_clock_scatter(clock: TestbedClock) -> None:
    seen = [Seen(c, values, "verify") for c, values in ((0, (100.0, 110.0)), (1, (110.0, 100.0)))]
    step = ConfirmationPlanner().next(fold(GRAPH, goal(clock=clock), records_of(seen)))
    assert isinstance(step, Measure)
    assert step.fresh_seed is (clock == "instructions")
