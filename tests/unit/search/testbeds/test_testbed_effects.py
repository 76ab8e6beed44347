"""What each of several testbeds shows by itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from scipy.stats import norm

from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.state import fold
from bisector.search.testbeds.testbed_effects import (
    Shown,
    TestbedEffect,
    TestbedEffects,
    _chance,
    effects_by_testbed,
)
from bisector.testing.fakes import METRIC
from tests.support.report_material import CULPRIT, GRAPH, W1, W2, differing_records
from tests.support.searching import ZERO, Seen, linear, make_evidence, records_of
from tests.support.searching import goal as exact


def effects(of: Mapping[str, tuple[float, float]], threshold: float = 0.02, boots: int = 2) -> TestbedEffects:
    goal = Goal(Metric(METRIC, "s", "lower", Threshold(threshold)))
    found = effects_by_testbed(
        fold(GRAPH, goal, differing_records(of, boots=boots)), CULPRIT - 1, [CULPRIT], "certify"
    )
    assert found is not None
    return found


def shown(found: TestbedEffects) -> dict[str, str]:
    return {one.testbed: one.shows for one in found.each}


@pytest.mark.parametrize("of", [W1, W2])
def test_each_testbed_has_its_own_estimate(of: Mapping[str, tuple[float, float]]) -> None:
    for one in effects(of).each:
        assert one.effect.low <= of[one.testbed][0] / 100 <= one.effect.high
        assert one.boots == (2, 2)


def test_three_machines_that_are_hurt_unequally_disagree() -> None:
    found = effects(W1, threshold=0.03)
    assert shown(found) == {"barcelona": "small", "clovertown": "reproduced", "westmere": "reproduced"}
    assert found.disagree
    assert found.p < 1e-3


def test_the_other_direction_is_a_verdict_of_its_own() -> None:
    found = effects(W2)
    assert shown(found)["barcelona"] == "opposite"
    assert found.disagree


@pytest.mark.parametrize(
    ("shows", "disagree"),
    [
        (("reproduced", "small"), False),
        (("opposite", "opposite"), False),
        (("opposite", "open"), False),
        (("opposite", "none"), True),
    ],
)
def test_sizes_that_may_differ_by_chance_disagree_only_where_one_is_of_the_other_direction(
    shows: tuple[Shown, Shown], disagree: bool
) -> None:
    each = tuple(TestbedEffect(name, ZERO, of, (2, 2)) for name, of in zip("ab", shows, strict=True))
    assert TestbedEffects(each, p=0.5, alpha=0.05).disagree is disagree


def test_a_change_that_one_machine_does_not_show_at_all() -> None:
    found = effects({"a": (6.0, 0.3), "b": (0.0, 0.3)})
    assert (shown(found), found.disagree) == ({"a": "reproduced", "b": "none"}, True)


def test_machines_that_show_the_same_agree_and_one_too_noisy_tells_nothing() -> None:
    same = effects({"a": (6.0, 0.3), "b": (6.0, 0.5)})
    assert not same.disagree
    noisy = effects({"a": (6.0, 0.3), "b": (2.0, 6.0)})
    assert (shown(noisy)["b"], noisy.disagree) == ("open", False)


def test_machines_that_do_not_differ_seldom_disagree() -> None:
    alarms = 0
    for level in range(40):
        names = {f"a{level}": (3.0, 0.5), f"b{level}": (3.0, 0.5)}  # the name is a part of the seed
        alarms += effects(names).disagree
    assert alarms <= 6, "5% of 40 is 2; more than 6 has a chance of 0.4%"


def test_two_testbeds_that_differ_by_two_deviations_do_so_once_in_twenty_times() -> None:
    """Cochran's Q of two is the square of a normal deviate, their difference over its deviation."""
    one, other = (
        make_evidence(0.0, 0.0, 0.0, effect, 0.0, sd, 0.5) for effect, sd in ((0.0, 0.03), (0.098, 0.04))
    )
    assert _chance([one, other]) == pytest.approx(2 * norm.sf(0.098 / 0.05))
    assert _chance([one, other]) == pytest.approx(0.05, rel=0.01)


def test_one_testbed_or_one_side_alone_is_no_comparison() -> None:
    goal = Goal(Metric(METRIC, "s", "lower", Threshold(0.02)))
    one = fold(GRAPH, goal, differing_records({"a": (6.0, 0.3)}))
    assert effects_by_testbed(one, CULPRIT - 1, [CULPRIT], "certify") is None
    two = fold(GRAPH, goal, differing_records(W1))
    assert effects_by_testbed(two, CULPRIT - 1, [CULPRIT], "search") is None
    assert effects_by_testbed(two, CULPRIT - 2, [CULPRIT], "certify") is None


def test_copies_of_a_boot_are_no_boots() -> None:
    """Their order would be evidence, though they are one draw."""
    draws = {0: (100.0, 110.0, 95.0), 1: (112.0, 104.0, 90.0)}
    seen = [
        Seen(commit, tuple(bed * y * (1 + again / 9) for y in draws[commit]), "certify", testbed=name)
        for name, bed in (("a", 1.0), ("b", 1.5))
        for again in (0, 0, 1)
        for commit in draws
    ]
    graph = linear(1)
    found = effects_by_testbed(fold(graph, exact(clock="instructions"), records_of(seen)), 0, [1], "certify")
    assert found is not None
    assert [one.boots for one in found.each] == [(2, 2), (2, 2)]
