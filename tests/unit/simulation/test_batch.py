"""The simulator's bookkeeping, with small planners written for the purpose, and its judgement of answers."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.model.records import Conclusion, Decision, Ending, Finding, Interval, Measure, Purpose, Ran
from bisector.model.state import State, fold
from bisector.simulation import Culprit, LabModel, Report, Scenario, read_samples, simulate
from bisector.simulation.histories import branched, linear
from bisector.simulation.judge import Judged, judge
from bisector.simulation.scenario import parse_costs, parse_culprits, parse_probability
from bisector.simulation.simulated_bisection import run_trial
from bisector.simulation.summary import Summary, share

ZERO = Interval(0.0, 0.0, 0.0)
CENTRE = Scenario(commits=64, culprits=(Culprit(2.0, 40),), lab=LabModel(run_noise=0.5))


Action = Measure | Callable[[State], Measure]


class Scripted:
    """Plays actions in order, then concludes."""

    def __init__(self, actions: Iterable[Action], conclusion: Conclusion | None = None) -> None:
        self.actions = iter(actions)
        self.conclusion = conclusion or Conclusion(Ending.INCONCLUSIVE, "end of the script")
        self.states: list[State] = []

    def next(self, state: State) -> Decision:
        self.states.append(state)
        action: Action | Conclusion = next(self.actions, self.conclusion)
        return action(state) if callable(action) else action


def visit(commit: int, runs: int, purpose: Purpose = "search") -> Measure:
    return Measure(commit, runs, purpose, "because", None)


def stay(runs: int) -> Callable[[State], Measure]:
    return lambda state: Measure(state.visits[-1].commit, runs, "search", "go on", boot=state.visits[-1].boot)


def answer(*commits: int | tuple[int, ...], ending: Ending = Ending.CULPRIT) -> Conclusion:
    findings = tuple(Finding((c,) if isinstance(c, int) else c, ZERO, 0.97) for c in commits)
    return Conclusion(ending, "", findings, confidence=0.97)


def test_builds_are_kept_boots_live_on_and_everything_is_counted_by_purpose() -> None:
    script = Scripted([visit(0, 3, "verify"), visit(10, 2), stay(4), visit(0, 1), visit(10, 1)])
    trial = run_trial(CENTRE, 1, script)
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
    trial = run_trial(scenario, 1, script)
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
    trial = run_trial(scenario, 1, Scripted([visit(unbuilt, 5), visit(unbooted, 5)]))
    assert trial.total().cost == 20 + 25
    assert trial.total().runs == 0
    assert "does not build" in trial.state.untestable[unbuilt]
    assert "does not boot" in trial.state.untestable[unbooted]


def test_the_same_seed_gives_the_same_result_whatever_the_jobs() -> None:
    small = Scenario(commits=4, lab=LabModel(run_noise=0.2))
    one = simulate(small, 6, 5)
    assert _timeless(one) == _timeless(simulate(small, 6, 5, jobs=2))
    assert _timeless(one) != _timeless(simulate(small, 6, 6))


def _timeless(summary: Summary) -> dict[str, Any]:
    return summary.model_dump(exclude={"planner_cpu_seconds_per_decision"})


@pytest.mark.parametrize(
    ("conclusion", "verdict", "right", "false"),
    [
        (answer(40), "correct", True, False),
        (answer(39), "wrong", False, True),
        (answer((40, 41), ending=Ending.CULPRIT_SET), "wrong", False, True),  # 40 could have been tested
        (answer(ending=Ending.NOT_REPRODUCED), "not_reproduced", False, True),
        (answer(ending=Ending.SPREAD), "spread", False, True),
        (answer(ending=Ending.INCONCLUSIVE), "inconclusive", False, False),
        (answer(40, 41, ending=Ending.CULPRITS), "wrong", False, True),
    ],
)
def test_judgement(conclusion: Conclusion, verdict: str, right: bool, false: bool) -> None:
    judged = judge(CENTRE, run_trial(CENTRE, 1, Scripted([], conclusion)))
    assert (judged.verdict, judged.right, judged.claim_wrong) == (verdict, right, false)


def test_a_set_is_right_only_where_its_members_cannot_be_told_apart() -> None:
    scenario = dataclasses.replace(CENTRE, lab=LabModel(broken=3))
    lab = scenario.draw(2)[1]
    masked = sorted(lab.untestable)
    assert 40 in masked
    exact = (*masked, masked[-1] + 1)  # the first testable commit after the stretch belongs to it

    def judged(members: tuple[int, ...]) -> Judged:
        conclusion = answer(members, ending=Ending.CULPRIT_SET)
        return judge(scenario, run_trial(scenario, 2, Scripted([], conclusion)))

    assert judged(exact).verdict == "set"
    assert judged(exact).set_size == len(exact)
    assert judged((masked[0] - 1, *exact)).verdict == "wrong"


def test_all_culprits_have_to_be_found_and_small_ones_may_be() -> None:
    scenario = dataclasses.replace(
        CENTRE, culprits=(Culprit(2.0, 10), Culprit(2.0, 50), Culprit(0.1, 30)), threshold=1.0
    )
    verdicts = {
        commits: judge(scenario, run_trial(scenario, 1, Scripted([], answer(*commits)))).verdict
        for commits in ((10, 50), (10, 30, 50), (10,), (10, 11, 50))
    }
    assert list(verdicts.values()) == ["correct", "correct", "incomplete", "wrong"]


def test_without_a_culprit_not_reproduced_is_right_and_improvements_are_no_regressions() -> None:
    for effect in (0.0, -2.0):
        scenario = dataclasses.replace(CENTRE, culprits=(Culprit(effect),), threshold=1.0)
        trial = run_trial(scenario, 1, Scripted([], answer(ending=Ending.NOT_REPRODUCED)))
        assert judge(scenario, trial).right


def test_branched_histories_are_topological_connected_and_of_the_size_asked_for() -> None:
    for commits, seed in itertools.product((1, 2, 7, 300), range(5)):
        graph = branched(commits, seed)
        assert sum(graph.candidate) == commits
        assert all(p < i for i, parents in enumerate(graph.parents) for p in parents)
        children = {p for parents in graph.parents for p in parents}
        assert all(i in children for i in range(len(graph.shas)) if graph.candidate[i] and i != graph.bad)
    assert any(len(p) > 1 for p in branched(300, 1).parents)


def test_threshold_defaults_to_half_the_smallest_effect_and_places_count_from_either_end() -> None:
    scenario = Scenario(commits=10, culprits=parse_culprits("first:2,last:-3,4:1"))
    assert scenario.limit == 0.5
    assert scenario.draw(1)[1].culprits == {1: 2.0, 10: -3.0, 4: 1.0}
    assert scenario.goal.metric.threshold.value == 0.005


def test_the_report_matches_its_published_schema(tmp_path: Path) -> None:
    summary = simulate(CENTRE, 2, 1)
    report = Report(seed=1, scenario=CENTRE.describe(), **summary.model_dump())
    data = json.loads(report.model_dump_json())
    schema = Report.model_json_schema(mode="serialization")
    assert set(schema["required"]) <= set(data)
    parts = ("correct", "wrong", "inconclusive", "not_reproduced", "incomplete", "spread", "fixed")
    assert sum(data[p] for p in parts) + data["sets"]["count"] == data["trials"] == 2


def test_exact_binomial_interval() -> None:
    # Clopper-Pearson for 8 of 10, as in every table of it
    s = share(8, 10)
    assert (round(s.low, 4), round(s.high, 4)) == (0.4439, 0.9748)
    assert share(0, 5).low == 0.0
    assert share(5, 5).high == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scenario(alpha=0.5),
        lambda: Scenario(alpha=float("nan")),
        lambda: Scenario(culprits=(Culprit(0.0),)),
        lambda: Scenario(culprits=(Culprit(2.0, 200),)),
        lambda: Scenario(culprits=(Culprit(float("inf")),)),
        lambda: Scenario(threshold=-1.0),
        lambda: Scenario(testbeds=0),
        lambda: linear(0),
        lambda: parse_culprits("40"),
        lambda: parse_culprits("0:2"),
        lambda: parse_costs("build=20,coffee=1"),
        lambda: parse_probability("often"),
        lambda: simulate(CENTRE, 0, 1),
    ],
)
def test_wrong_requests_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(RequestError):
        make()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"boots": []}', '{"boots": [[]]}', '{"boots": [[1, NaN]]}', '{"boots": [["1"]]}'],
)
def test_bad_sample_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "samples.json"
    path.write_text(text)
    with pytest.raises(RequestError) as error:
        read_samples(path)
    assert str(path) in error.value.message


def test_sample_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.write_text('{"boots": [[1, 2.5], [3]]}')
    assert read_samples(path) == ((1.0, 2.5), (3.0,))
