"""What a night boots, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.goal import Budget
from bisector.model.records import Marked, Ran
from bisector.model.state import fold
from bisector.search.series.night_planner import RUNS_PER_BOOT, NightPlanner
from tests.support.searching import Seen, drive, goal, linear, records_of

GRAPH = linear(1)
REFERENCE, TIP = GRAPH.good, GRAPH.bad


def measured(commit: int, *values: float, live: bool = False) -> Seen:
    return Seen(commit, values or (1.0, 1.1, 1.2), "verify", live=live)


def next_of(*visits: Seen, boots: int = 4, budget: Budget | None = None) -> Measure | Conclusion:
    wanted = goal(budget=budget or Budget())
    return NightPlanner(boots).next(fold(GRAPH, wanted, records_of(visits)))


@pytest.mark.parametrize(
    ("boots", "order"),
    [(1, [TIP, REFERENCE]), (4, [TIP, TIP, REFERENCE, TIP, TIP]), (3, [TIP] * 2 + [REFERENCE, TIP])],
)
def test_the_reference_is_booted_in_the_middle_of_the_tips_boots(boots: int, order: list[int]) -> None:
    end, _, trials = drive(GRAPH, goal(), lambda commit, run: 1.0, planner=NightPlanner(boots))
    assert [trial.commit for trial in trials if trial.boot is None] == order
    assert {trial.runs for trial in trials} == {RUNS_PER_BOOT}
    assert (end.ending, end.warnings) == (Ending.MEASURED, ())
    assert end.summary.endswith("the reference in 1.")


def test_a_tip_that_does_not_build_or_boot_ends_the_night_and_nothing_is_blamed() -> None:
    end, _, trials = drive(GRAPH, goal(), lambda *_: 1.0, planner=NightPlanner(4), unbuildable=[TIP])
    assert (end.ending, end.findings, len(trials)) == (Ending.INCONCLUSIVE, (), 1)
    assert "The tip was not measured: does not build" in end.summary
    end, _, _ = drive(
        GRAPH, goal(), lambda commit, _: None if commit == TIP else 1.0, planner=NightPlanner(4)
    )
    assert "does not boot" in end.summary


def test_a_reference_that_does_not_build_is_told_and_the_tip_is_measured() -> None:
    end, _, trials = drive(GRAPH, goal(), lambda *_: 1.0, planner=NightPlanner(4), unbuildable=[REFERENCE])
    assert end.ending is Ending.MEASURED
    assert sum(trial.commit == TIP for trial in trials) == 4
    assert end.warnings == ("The reference was not measured: does not build: error: simulated.",)


def test_what_a_killed_process_had_measured_counts() -> None:
    step = next_of(measured(TIP, 1.0), measured(TIP, 1.0, live=True))
    assert isinstance(step, Measure)
    assert (step.commit, step.runs, step.boot) == (TIP, RUNS_PER_BOOT - 1, "b1")
    step = next_of(measured(TIP, 1.0), measured(TIP))
    assert isinstance(step, Measure)
    assert (step.commit, step.boot) == (REFERENCE, None)


def test_warm_up_runs_are_none_of_those_that_a_boot_has() -> None:
    records = [
        *records_of([measured(TIP, 1.0, live=True)]),
        Ran("b0", 1, {"real": 9.0}, 1.0, 1.0, warmup=True),
    ]
    step = NightPlanner(4).next(fold(GRAPH, goal(), records))
    assert isinstance(step, Measure) and (step.boot, step.runs) == ("b0", 2)
    assert step.reason == "2 more runs of the tip"


def test_a_flagged_run_is_made_up_for_by_another_boot() -> None:
    stalled = Ran("b0", 2, {"real": 9.0}, 1.0, 1.0, flags=("stall",))
    step = NightPlanner(4).next(
        fold(GRAPH, goal(), [*records_of([measured(TIP, 1.0, 1.0, live=True)]), stalled])
    )
    assert isinstance(step, Measure) and (step.boot, step.reason) == (None, "boot 2 of the tip")


def test_a_boot_that_another_trial_or_testbed_has_is_left_to_it() -> None:
    state = fold(GRAPH, goal(), records_of([measured(TIP, 1.0, live=True)]))
    goes_on = Measure(TIP, 2, "verify", "", "b0")
    for other in (replace(state, pending=(goes_on,)), replace(state, idle="u")):
        step = NightPlanner(4).next(other)
        assert isinstance(step, Measure) and (step.boot, step.reason) == (None, "boot 2 of the tip")


def test_a_tip_that_fails_in_its_second_boot_is_measured_no_further() -> None:
    boots = [measured(TIP), measured(TIP, 1.0, live=True)]
    end = NightPlanner(4).next(fold(GRAPH, goal(), [*records_of(boots), Marked(TIP, "skip", "it hangs")]))
    assert isinstance(end, Conclusion) and end.ending is Ending.MEASURED
    assert end.warnings == (
        "The tip was not measured further: skipped by the user: it hangs.",
        "The reference was not measured: no run of it counted.",
    )


def test_more_boots_than_were_wanted_leave_the_reference() -> None:
    step = next_of(*[measured(TIP)] * 6)
    assert isinstance(step, Measure) and step.reason == "boot 1 of the reference"


def test_a_night_boots_with_other_random_numbers_where_runs_scatter() -> None:
    seen = [measured(TIP), measured(TIP), measured(REFERENCE, 1.2, 1.0, 1.1)]
    for clock, fresh in (("wall", False), ("instructions", True)):
        step = NightPlanner(4).next(fold(GRAPH, goal(clock=clock), records_of(seen)))
        assert isinstance(step, Measure)
        assert step.fresh_seed is fresh


def test_a_boot_under_way_elsewhere_is_not_made_twice() -> None:
    state = fold(GRAPH, goal(), records_of([measured(TIP)]))
    other = Measure(REFERENCE, RUNS_PER_BOOT, "verify", "")
    step = NightPlanner(1).next(replace(state, pending=(other,)))
    assert isinstance(step, Conclusion)


def test_runs_that_never_count_end_the_night_too() -> None:
    step = next_of(*[Seen(TIP, (), "verify")] * 15)
    assert isinstance(step, Conclusion)
    assert step.ending is Ending.INCONCLUSIVE
    step = next_of(*[Seen(TIP, (), "verify")] * 14)
    assert isinstance(step, Measure) and step.reason == "boot 1 of the tip"


def test_the_budget_ends_a_night_with_what_it_has() -> None:
    step = next_of(measured(TIP), budget=Budget(seconds=1.0))
    assert isinstance(step, Conclusion)
    assert step.ending is Ending.MEASURED
    assert step.warnings[0] == "The night ended before 4 boots of it."
    step = next_of(budget=Budget(seconds=0.0))
    assert isinstance(step, Conclusion)
    assert step.summary == "The budget of the night is spent."


def test_so_far_tells_that_it_goes_on() -> None:
    assert NightPlanner(4).so_far(fold(GRAPH, goal(), ())).summary == "The night has not ended."
