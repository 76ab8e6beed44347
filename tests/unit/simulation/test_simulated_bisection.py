"""The simulator's bookkeeping, with small planners written for the purpose."""

import dataclasses

import pytest

from bisector.model.goal import TestbedClock
from bisector.model.records import Ran
from bisector.model.state import fold
from bisector.search.planner import Planner
from bisector.simulation.judge import judge
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.support.searching import CENTRE, Scripted, stay, visit


def test_builds_are_kept_boots_live_on_and_everything_is_counted_by_purpose() -> None:
    script = Scripted([visit(0, 3, "verify"), visit(10, 2), stay(4), visit(0, 1), visit(10, 1)])
    trial = simulate_bisection(CENTRE, 1, script)
    total = trial.total()
    assert (total.builds, total.boots, total.runs) == (2, 4, 11)
    assert total.cost == trial.wall == 2 * 20 + 4 * 5 + 11
    assert trial.spent["verify"].cost == 28
    assert [v.live for v in trial.state.visits] == [False, False, False, True]
    assert [len(v.samples) for v in trial.state.visits] == [3, 6, 1, 1]
    assert trial.state == fold(trial.lab.graph, CENTRE.goal, trial.state.records)


def test_testbeds_work_at_once_and_wait_for_the_builder() -> None:
    scenario = dataclasses.replace(CENTRE, testbeds=2)
    script = Scripted([visit(0, 10), visit(10, 10), visit(20, 1)])
    trial = simulate_bisection(scenario, 1, script)
    # builds end at 20 and 40, the boots' runs at 35 and 55; the third build, asked for at 35, runs to 60
    ends = [r.at for r in trial.state.records if isinstance(r, Ran)]
    assert ends == sorted(ends)
    assert max(ends) == 55
    assert [len(s.pending) for s in script.states] == [0, 1, 1, 1]
    assert script.states[1].idle == "testbed-1"
    assert trial.total().builds == 3


def test_untestable_commits_cost_what_they_cost_and_say_so() -> None:
    scenario = dataclasses.replace(CENTRE, lab=LabModel(untestable=0.5))
    lab = scenario.draw(1)[1]
    unbuilt = next(c for c, why in lab.untestable.items() if why == "build")
    unbooted = next(c for c, why in lab.untestable.items() if why == "boot")
    trial = simulate_bisection(scenario, 1, Scripted([visit(unbuilt, 5), visit(unbooted, 5)]))
    assert trial.total().cost == 20 + 25
    assert trial.total().runs == 0
    assert "does not build" in trial.state.untestable[unbuilt]
    assert "does not boot" in trial.state.untestable[unbooted]


@pytest.mark.parametrize("clock", ["wall", "instructions"])
def test_a_stretch_that_cannot_be_tested_is_a_set_also_where_branches_leave_it(clock: TestbedClock) -> None:
    """In the first of these the search went on for a small second culprit until its budget ended."""
    lab = LabModel(broken=6, clock=clock, run_noise=0.2 if clock == "wall" else 0.001)
    scenario = Scenario(commits=40, history="branched", threshold=1.0, lab=lab)
    for seed in range(5):
        trial = simulate_bisection(scenario, seed, Planner())
        assert judge(scenario, trial).verdict == "set"
        assert trial.total().boots < 60
