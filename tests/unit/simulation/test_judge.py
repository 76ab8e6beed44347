"""The judgement of answers against the truth."""

import dataclasses
from dataclasses import replace

import pytest

from bisector.model.decisions import NEWEST_IS_NONE, NO_FRESH_BOOTS_TELL, Conclusion, Ending, Interval
from bisector.simulation.judge import Judged, judge
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from bisector.simulation.testbed_traits import TestbedTraits
from tests.support.searching import CENTRE, Scripted, answer


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
    judged = judge(CENTRE, simulate_bisection(CENTRE, 1, Scripted([], conclusion)))
    assert (judged.verdict, judged.right, judged.claim_wrong) == (verdict, right, false)


def test_that_a_loss_is_spread_is_false_where_there_is_none() -> None:
    spread = answer(ending=Ending.SPREAD)
    for background, false in ((0.0, True), (8.0, False)):
        scenario = dataclasses.replace(
            CENTRE, culprits=(), threshold=1.0, lab=LabModel(background=background)
        )
        seed = next(s for s in range(99) if abs(_loss(scenario, s)) >= scenario.limit or not background)
        judged = judge(scenario, simulate_bisection(scenario, seed, Scripted([], spread)))
        assert (judged.right, judged.claim_wrong) == (not false, false)


def _loss(scenario: Scenario, seed: int) -> float:
    graph, lab = scenario.draw(seed)
    return lab.truth(graph.bad) - lab.truth(graph.good)


def test_a_set_is_right_only_where_its_members_cannot_be_told_apart() -> None:
    scenario = dataclasses.replace(CENTRE, lab=LabModel(broken=3))
    lab = scenario.draw(2)[1]
    masked = sorted(lab.untestable)
    assert 40 in masked
    exact = (*masked, masked[-1] + 1)  # the first testable commit after the stretch belongs to it

    def judged(members: tuple[int, ...], note: str = "") -> Judged:
        conclusion = answer(members, ending=Ending.CULPRIT_SET)
        conclusion = replace(conclusion, findings=(replace(conclusion.findings[0], note=note),))
        return judge(scenario, simulate_bisection(scenario, 2, Scripted([], conclusion)))

    assert judged(exact).verdict == "set"
    assert judged(exact).set_size == len(exact)
    more, less = (masked[0] - 1, *exact), (*exact, exact[-1] + 1)
    assert judged(more).verdict == "wrong"
    # A set need not be the smallest where its note does not say so, but has to hold the culprit.
    assert judged(more, NO_FRESH_BOOTS_TELL).verdict == "set"
    assert judged(more[:1] + exact[-1:], NO_FRESH_BOOTS_TELL).verdict == "wrong"
    assert judged(less).verdict == "wrong"
    assert judged(less, NEWEST_IS_NONE).verdict == "set"
    assert judged((39, 40), NEWEST_IS_NONE).verdict == "wrong"  # the culprit is the newest


def test_all_culprits_have_to_be_found_and_small_ones_may_be() -> None:
    scenario = dataclasses.replace(
        CENTRE, culprits=(Culprit(2.0, 10), Culprit(2.0, 50), Culprit(0.1, 30)), threshold=1.0
    )
    verdicts = {
        commits: judge(scenario, simulate_bisection(scenario, 1, Scripted([], answer(*commits)))).verdict
        for commits in ((10, 50), (10, 30, 50), (10,), (10, 11, 50))
    }
    assert list(verdicts.values()) == ["correct", "correct", "incomplete", "wrong"]


def test_where_testbeds_differ_the_truth_is_that_of_each() -> None:
    traits = (TestbedTraits("testbed-1", effect=0.0), TestbedTraits("testbed-2", effect=-1.0))
    scenario = dataclasses.replace(CENTRE, testbeds=3, threshold=1.5, lab=LabModel(testbeds=traits))

    def judged(conclusion: Conclusion) -> Judged:
        return judge(scenario, simulate_bisection(scenario, 1, Scripted([], conclusion)))

    def on(*names: str) -> Conclusion:
        return dataclasses.replace(answer(40), searched_on=names, total=Interval(0.019, 0.02, 0.021))

    assert judged(answer(ending=Ending.NOT_REPRODUCED)).claim_wrong  # one shows it
    assert judged(on("testbed-0")).verdict == "correct"
    assert judged(on("testbed-0")).held["total"] == (1, 1)
    for none in ("testbed-1", "testbed-2"):
        assert judged(on("testbed-0", none)).claim_wrong
    assert "total" not in judged(on()).held  # a mean is true on none of them


def test_any_false_claim_makes_an_answer_wrong_even_one_without_an_ending() -> None:
    proven = answer(40).findings[0]
    other = dataclasses.replace(proven, commits=(41,), certified=True, small=True)
    for ending in (Ending.CULPRIT, Ending.INCONCLUSIVE):
        said = dataclasses.replace(answer(40), ending=ending, findings=(proven, other))
        judged = judge(CENTRE, simulate_bisection(CENTRE, 1, Scripted([], said)))
        assert (judged.verdict, judged.right) == ("wrong", False)
        assert judged.confident and judged.claim_wrong
        assert judged.false_claims == ("41 changes nothing",)


def test_an_interval_that_misses_is_counted_and_is_no_false_claim() -> None:
    said = dataclasses.replace(answer(40), rest=Interval(0.5, 0.6, 0.7))
    judged = judge(CENTRE, simulate_bisection(CENTRE, 1, Scripted([], said)))
    assert judged.verdict == "correct" and not judged.claim_wrong
    assert judged.held["rest"] == (0, 1)


def test_without_a_culprit_not_reproduced_is_right_and_improvements_are_no_regressions() -> None:
    for effect in (0.0, -2.0):
        scenario = dataclasses.replace(CENTRE, culprits=(Culprit(effect),), threshold=1.0)
        trial = simulate_bisection(scenario, 1, Scripted([], answer(ending=Ending.NOT_REPRODUCED)))
        assert judge(scenario, trial).right
