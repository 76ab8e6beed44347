"""What a change does to a loss: each verdict from levels that are known, with and without noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.goal import Budget, Direction, Goal, Metric, TestbedClock, Threshold
from bisector.model.records import Built
from bisector.model.state import fold
from bisector.search import endpoints
from bisector.search.attempt.mending import MendingPlanner
from tests.support.searching import Seen, drive, goal, make_evidence, records_of

GRAPH = CommitGraph(
    tuple(f"{i:040x}" for i in range(3)), ((), (0,), (1,)), (False, True, True), good=0, bad=1
)


def levels(*means: float, noise: float = 0.003) -> Callable[[int, int], float]:
    return lambda commit, run: means[commit] * (1 + noise * ((run * 7919) % 5 - 2))


def ended(value: Callable[[int, int], float], clock: TestbedClock = "wall") -> Conclusion:
    return drive(GRAPH, goal(clock=clock), value, planner=MendingPlanner())[0]


@pytest.mark.parametrize("clock", ["wall", "instructions"])
@pytest.mark.parametrize(
    ("means", "ending", "share"),
    [
        ((100, 120, 100), Ending.MENDED, 1.0),
        ((100, 120, 102), Ending.MENDED, 0.9),
        ((100, 120, 90), Ending.MENDED, 1.5),
        ((100, 120, 110), Ending.PARTLY_MENDED, 0.5),
        ((100, 120, 120), Ending.NOT_MENDED, 0.0),
        ((100, 120, 130), Ending.NOT_MENDED, -0.5),
        ((100, 100, 90), Ending.NOT_REPRODUCED, None),
    ],
)
def test_the_verdict_is_that_of_the_levels(
    clock: TestbedClock, means: tuple[float, ...], ending: Ending, share: float | None
) -> None:
    end = ended(levels(*means, noise=0.0 if clock == "instructions" else 0.003), clock)
    assert end.ending is ending
    assert end.mending is not None
    found = end.mending.share
    assert (found is None) == (share is None)
    if found is not None:
        assert found.low <= found.estimate <= found.high
        assert found.estimate == pytest.approx(share, abs=0.03)
        assert end.mending.loss.estimate == pytest.approx(0.2, abs=0.01)
        assert end.mending.gain.estimate == pytest.approx(means[2] / means[1] - 1, abs=0.01)
        assert end.mending.rest.estimate == pytest.approx(means[2] / means[0] - 1, abs=0.01)


@pytest.mark.parametrize(
    ("better", "means", "share"),
    [("lower", (10, 40, 20), 2 / 3), ("higher", (100, 25, 50), 1 / 3), ("lower", (0.0, 30.0, 10.0), 2 / 3)],
)
def test_the_share_is_of_the_metric_and_not_of_its_logarithm(
    better: Direction, means: tuple[float, ...], share: float
) -> None:
    wanted = Goal(Metric("real", "s", better, Threshold(1.0, relative=False)), clock="instructions")
    if min(means) > 0:
        wanted = replace(wanted, metric=Metric("real", "s", better, Threshold(0.05)))
    end = drive(GRAPH, wanted, lambda commit, run: means[commit], planner=MendingPlanner())[0]
    assert end.mending is not None and end.mending.share is not None
    assert end.mending.share.estimate == pytest.approx(share, abs=0.01)
    loss, rest = end.mending.loss.estimate, end.mending.rest.estimate
    assert end.mending.share.estimate == pytest.approx(1 - rest / loss, abs=0.001), "as the changes beside it"
    assert end.mending.share.high - end.mending.share.low < 0.1


@pytest.mark.parametrize(
    ("means", "ending", "said"),
    [
        ((100, 105.5, 102.6), Ending.MENDED, "53% (46% .. 59%) of the loss of +5.50%"),
        ((100, 105.4, 102.8), Ending.NOT_MENDED, "Only 48% (41% .. 55%) of the loss of +5.40%"),
        ((100, 105.5, 105.5), Ending.NOT_MENDED, "The loss of +5.50% (+5.11% .. +5.88%) stays"),
    ],
)
def test_where_gain_and_rest_are_both_below_the_threshold_the_larger_one_decides(
    means: tuple[float, ...], ending: Ending, said: str
) -> None:
    end = ended(levels(*means, noise=0.0), "instructions")
    assert end.ending is ending
    assert end.summary.startswith(said)


def test_all_three_are_measured_in_turn_and_over_layouts() -> None:
    _, records, trials = drive(GRAPH, goal(), levels(100, 120, 100), planner=MendingPlanner())
    boots = [trial.commit for trial in trials if trial.boot is None]
    assert boots[:6] == [0, 1, 2, 2, 1, 0]
    assert {(r.commit, r.layout) for r in records if isinstance(r, Built)} >= {
        (c, n) for c in (0, 1, 2) for n in (0, 1, 2)
    }


def decide(
    *visits: Seen, binaries: tuple[str, str, str], clock: TestbedClock = "instructions"
) -> Conclusion | Measure:
    builds = [Built(commit, True, 1.0, binary) for commit, binary in enumerate(binaries)]
    return MendingPlanner().next(fold(GRAPH, goal(clock=clock), [*records_of(visits), *builds]))


def test_a_change_that_reaches_no_kernel_mends_nothing_and_needs_no_boot() -> None:
    end = decide(binaries=("a", "b", "b"))
    assert isinstance(end, Conclusion)
    assert end.ending is Ending.NOT_MENDED
    assert "byte for byte" in end.summary


def test_a_revert_to_the_parents_kernel_needs_only_the_loss() -> None:
    both = [
        Seen(c, (level, level), "certify") for c, level in ((0, 100.0), (1, 120.0), (1, 120.0), (0, 100.0))
    ]
    end = decide(*both, binaries=("a", "b", "a"))
    assert isinstance(end, Conclusion)
    assert end.ending is Ending.MENDED
    assert end.mending is not None
    assert end.mending.gone() == "100% (100% .. 100%)"
    more = decide(*both[:3], binaries=("a", "b", "a"))
    assert isinstance(more, Measure)
    assert more.commit == 0, "the patched kernel is never booted"


@pytest.mark.parametrize(
    ("log_e_change", "low", "share"), [(10.0, -0.01, "100% (100% .. 100%)"), (1.0, 0.01, "unknown")]
)
def test_a_share_of_the_loss_is_told_once_the_loss_is_proven_whatever_its_interval(
    monkeypatch: pytest.MonkeyPatch, log_e_change: float, low: float, share: str
) -> None:
    seen = make_evidence(log_e_change, -10.0, low, 0.1, 0.2, 0.05, 1.0)
    monkeypatch.setattr(endpoints, "compare_two", lambda context, before, after: seen)
    builds = [Built(commit, True, 1.0, binary) for commit, binary in enumerate("aba")]
    boots = records_of([Seen(c, purpose="certify") for c in (0, 1, 1, 0)])
    end = MendingPlanner().so_far(fold(GRAPH, goal(clock="instructions"), [*boots, *builds]))
    assert end.mending is not None
    assert end.mending.gone() == share


def test_what_cannot_be_tested_ends_it() -> None:
    state = fold(GRAPH, goal(), [Built(2, False, 1.0, failure="error: x undeclared")])
    end = MendingPlanner().next(state)
    assert isinstance(end, Conclusion)
    assert (end.ending, end.mending) == (Ending.INCONCLUSIVE, None)
    assert "The patched kernel cannot be tested: does not build: error: x" in end.summary


def test_a_budget_ends_it_with_what_is_known() -> None:
    wanted = goal(budget=Budget(runs=12))
    end, _, _ = drive(GRAPH, wanted, levels(100, 120, 100, noise=0.1), planner=MendingPlanner())
    assert end.ending is Ending.INCONCLUSIVE
    assert "budget" in end.summary
    assert end.mending is not None


def test_before_the_end_it_says_what_is_known_so_far() -> None:
    early = MendingPlanner().so_far(fold(GRAPH, goal(), records_of([Seen(0, purpose="certify")])))
    assert (early.ending, early.mending) == (Ending.INCONCLUSIVE, None)


@pytest.mark.parametrize("clock", ["wall", "instructions"])
def test_boots_have_other_random_numbers_where_runs_of_an_exact_clock_scatter(clock: TestbedClock) -> None:
    seen = [Seen(c, values, "certify") for c, values in ((0, (100.0, 110.0)), (1, (110.0, 100.0)))]
    step = MendingPlanner().next(fold(GRAPH, goal(clock=clock), records_of(seen)))
    assert isinstance(step, Measure)
    assert step.fresh_seed is (clock == "instructions")
