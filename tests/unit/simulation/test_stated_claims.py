"""Every statement of a conclusion is compared with the truth: each kind of it, true and false."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.search.testbeds.ends_by_testbed import EndsOnTestbed, Shows, TestbedChoice
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.stated_claims import IntervalKind, Statements, check_statements
from bisector.simulation.testbed_traits import TestbedTraits

TWO = Scenario(commits=64, culprits=(Culprit(2.0, 10), Culprit(0.5, 50)), threshold=1.0)
"""Commit 10 makes it 2% worse, commit 50 by half of the threshold."""


def around(percent: float, half: float = 0.1) -> Interval:
    """Return an interval about a change in percent."""
    return Interval((percent - half) / 100, percent / 100, (percent + half) / 100)


def proven(*commits: int, effect: float, small: bool = False) -> Finding:
    return Finding(commits, around(effect), 0.95, certified=True, small=small)


def check(scenario: Scenario, *findings: Finding, said: str = "", **more: Any) -> Statements:
    ending = more.pop("ending", Ending.CULPRIT)
    return check_statements(scenario, scenario.draw(1)[1], Conclusion(ending, said, findings, **more))


@pytest.mark.parametrize(
    ("finding", "false"),
    [
        (proven(10, effect=2.0), ()),
        (proven(11, effect=2.0), ("11 changes nothing",)),
        (proven(10, effect=-2.0), ("10 changes the metric the other way",)),
        (proven(50, effect=0.5, small=True), ()),
        (proven(49, effect=0.5, small=True), ("49 changes nothing",)),
        (proven(50, effect=-0.5, small=True), ("50 changes the metric the other way",)),
        (proven(10, effect=0.5, small=True), ("10 is not smaller than the threshold",)),
        (dataclasses.replace(proven(11, effect=2.0), certified=False), ()),  # the most probable so far
    ],
)
def test_of_a_proven_change(finding: Finding, false: Sequence[str]) -> None:
    assert check(TWO, finding).false_claims == tuple(false)


def test_where_a_higher_number_is_better_a_loss_lowers_it() -> None:
    scenario = dataclasses.replace(TWO, lab=LabModel(better="higher"))
    stated = check(scenario, proven(10, effect=-2.0), total=around(-2.5), rest=around(-0.5))
    assert stated.false_claims == ()
    assert stated.held == {"total": (1, 1), "effect": (1, 1), "rest": (1, 1)}
    assert check(scenario, proven(10, effect=2.0)).false_claims == ("10 changes the metric the other way",)


@pytest.mark.parametrize(
    ("stated", "held"),
    [
        ({"total": around(2.5)}, {"total": (1, 1)}),
        ({"total": around(2.7)}, {"total": (0, 1)}),
        ({"total": around(2.3)}, {"total": (0, 1)}),
        ({"rest": around(2.5)}, {"rest": (1, 1)}),
        ({"rest": around(0.5)}, {"rest": (0, 1)}),
        ({"findings": (proven(10, effect=2.0),), "rest": around(0.5)}, {"effect": (1, 1), "rest": (1, 1)}),
        ({"findings": (proven(10, effect=2.0),), "rest": around(0.3)}, {"effect": (1, 1), "rest": (0, 1)}),
        ({"findings": (proven(10, effect=2.2),)}, {"effect": (0, 1)}),
        ({"levels": ((0, around(0)), (9, around(0)), (10, around(2)), (63, around(2)))}, {"level": (2, 3)}),
        ({"findings": (Finding((9, 10, 11), around(2), 0.95),)}, {"suspects": (1, 1)}),
        ({"findings": (Finding((11, 12), around(2), 0.95),)}, {"suspects": (0, 1)}),
    ],
)
def test_of_intervals(stated: dict[str, Any], held: Mapping[IntervalKind, tuple[int, int]]) -> None:
    findings = stated.pop("findings", ())
    assert check(TWO, *findings, **stated).held == held


def test_a_step_is_relative_to_the_level_before_it() -> None:
    scenario = dataclasses.replace(TWO, culprits=(Culprit(100.0, 10), Culprit(100.0, 50)), threshold=50.0)
    both = (proven(10, effect=100.0), proven(50, effect=50.0))
    stated = check(scenario, *both, rest=around(0.0), total=around(200.0))
    assert stated.held == {"total": (1, 1), "effect": (2, 2), "rest": (1, 1)}


@pytest.mark.parametrize(("said", "false"), [(2, False), (3, True)])
def test_of_how_many_commits_have_a_part(said: int, false: bool) -> None:
    text = (
        f"No commit reaches the threshold: at least {said} commits have a part in it. The largest steps ..."
    )
    assert bool(check(TWO, said=text, ending=Ending.SPREAD).false_claims) == false


DIFFER = dataclasses.replace(
    TWO,
    testbeds=3,
    threshold=1.5,
    lab=LabModel(testbeds=(TestbedTraits("testbed-1", effect=0.0), TestbedTraits("testbed-2", effect=-1.0))),
)
"""The loss is on testbed-0 alone; testbed-1 shows nothing, testbed-2 a gain."""


def told(shows: Sequence[Shows], ways: Sequence[int] = (0, 0, 0)) -> Conclusion:
    """Return the conclusion in the words of the planner: what the testbeds show, and their directions."""
    each = tuple(
        EndsOnTestbed(f"testbed-{i}", around(2.0 * (way or 1)), one, way, True)
        for i, (one, way) in enumerate(zip(shows, ways, strict=True))
    )
    used = tuple(one.testbed for one in each if one.shows == "shown")
    choice = TestbedChoice(True, each, used if len(used) < 3 else ())
    return choice.add_to(Conclusion(Ending.CULPRIT, "Proven.", (proven(10, effect=2.0),)))


@pytest.mark.parametrize(
    ("conclusion", "false"),
    [
        (told(("shown", "absent", "absent")), ()),
        (told(("shown", "absent", "open")), ()),
        (told(("shown", "shown", "absent")), ("testbed-1 does not show the change",)),
        (
            told(("absent", "shown", "open")),
            ("testbed-1 does not show the change", "testbed-0 shows the change"),
        ),
        (told(("shown", "open", "open")), ()),
        (told(("shown", "absent", "absent"), (1, 0, -1)), ()),
        (told(("shown", "absent", "absent"), (1, -1, 0)), ("testbed-1 does not move down",)),
        (
            told(("shown", "absent", "absent"), (-1, 0, 1)),
            ("testbed-2 does not move up", "testbed-0 does not move down"),
        ),
    ],
)
def test_of_testbeds(conclusion: Conclusion, false: Sequence[str]) -> None:
    stated = check_statements(DIFFER, DIFFER.draw(1)[1], conclusion)
    assert [c for c in stated.false_claims if "testbed" in c] == list(false)


def test_intervals_of_testbeds_that_differ_are_not_judged() -> None:
    assert check(DIFFER, total=around(2.5)).held == {}
    assert check(DIFFER, total=around(2.5), searched_on=("testbed-0",)).held == {"total": (1, 1)}
