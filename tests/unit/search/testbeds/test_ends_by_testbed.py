"""Where the search goes on if the ends differ on some testbeds and not on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from bisector.model.decisions import Conclusion, Ending, Measure, Released
from bisector.model.goal import TestbedClock
from bisector.model.state import fold
from bisector.search.planner import Planner
from bisector.search.testbeds.ends_by_testbed import (
    MAX_ALWAYS_COMPARED,
    TestbedChoice,
    _compare_on_each,
    choose_testbeds,
)
from tests.support.searching import Seen, context_of, goal, linear, records_of

GRAPH = linear(8)
GOOD, BAD = GRAPH.good, GRAPH.bad
LOSS, GAIN, NONE = 0.12, -0.12, 0.0
"""Beyond the threshold, which is 5%, in either direction; and no change."""


def ends(of: Mapping[str, float], boots: int = 4, noise: float = 0.001, layouts: int = 1) -> list[Seen]:
    """Return boots of both ends on each testbed, whose levels differ twofold. of: the change on each."""
    random = np.random.default_rng(6)
    return [
        Seen(
            commit,
            tuple(
                100.0 * 2**place * (1 + change * (commit == BAD)) * np.exp(noise * random.standard_normal(3))
            ),
            "verify",
            layout=number % layouts,
            testbed=name,
        )
        for number in range(boots)
        for place, (name, change) in enumerate(of.items())
        for commit in (GOOD, BAD)
    ]


def chosen(of: Mapping[str, float], differ: bool | None, **more: float) -> TestbedChoice:
    context, cache = context_of(GRAPH, ends(of, **more))  # type: ignore[arg-type]
    return choose_testbeds(context, cache, differ)


def shows(choice: TestbedChoice) -> dict[str, str]:
    return {one.testbed: one.shows for one in choice.each}


@pytest.mark.parametrize("differ", [True, False, None])
def test_the_search_goes_on_where_the_change_is_shown(differ: bool | None) -> None:
    choice = chosen({"a": LOSS, "b": NONE}, differ)
    assert shows(choice) == {"a": "shown", "b": "absent"}
    assert (choice.differ, choice.used) == (True, ("a",))


def test_testbeds_that_all_show_it_are_all_used() -> None:
    choice = chosen({"a": LOSS, "b": LOSS}, True)
    assert (choice.differ, choice.used) == (True, ())
    assert choice.release("b") is None


def test_not_reproduced_needs_every_testbed() -> None:
    assert chosen({"a": NONE, "b": NONE}, False).differ is False
    noisy = chosen({"a": NONE, "b": NONE}, False, noise=0.08)
    assert (noisy.differ, "open" in shows(noisy).values()) == (None, True)


def test_a_testbed_too_noisy_to_tell_is_given_up_after_many_boots() -> None:
    before = chosen({"a": LOSS, "b": NONE}, True, noise=0.3, boots=3)
    after = chosen({"a": NONE, "b": NONE}, False, noise=0.5, boots=16)
    assert before.differ is True  # all together showed it, and nothing contradicts
    assert (after.differ, set(shows(after).values()) & {"shown"}) == (False, set())


def test_one_boot_of_each_end_raises_a_doubt_at_most() -> None:
    choice = chosen({"a": LOSS, "b": NONE}, True, boots=1)
    assert shows(choice) == {"a": "open", "b": "doubtful"}
    assert choice.differ is None
    agree = chosen({"a": LOSS, "b": LOSS}, True, boots=1)
    assert (set(shows(agree).values()), agree.differ) == ({"open"}, True)


def test_a_testbed_that_cannot_boot_any_more_is_waited_for_so_long_only() -> None:
    """b has no loss; a, of which one boot of each end is known, was set aside. All together show it."""
    few = [seen for seen in ends({"a": LOSS, "b": NONE}, boots=1) if seen.testbed == "a"]
    for boots, differ, used in ((15, None, ()), (16, True, ("a",))):
        b = [seen for seen in ends({"a": LOSS, "b": NONE}, boots=boots) if seen.testbed == "b"]
        context, cache = context_of(GRAPH, [*few, *b])
        choice = choose_testbeds(context, cache, True)
        assert (choice.differ, choice.used) == (differ, used)
    conclusion = choice.add_to(Conclusion(Ending.INCONCLUSIVE, "."))
    assert conclusion.summary == ". The change may be on a, not on b: searched on a."


@pytest.mark.parametrize(("boots", "b"), [(2, "doubtful"), (3, "absent")])
def test_that_a_testbed_does_not_show_it_needs_the_boots_of_a_claim_too(boots: int, b: str) -> None:
    """Of two boots against two, one in six has both of one side first, whatever they scatter like."""
    choice = chosen({"a": LOSS, "b": NONE}, True, boots=boots)
    assert (shows(choice)["b"], choice.differ) == (b, None)


@pytest.mark.parametrize(
    ("boots", "clock", "told"),
    [(3, "wall", False), (4, "wall", True), (1, "instructions", False), (2, "instructions", True)],
)
def test_directions_are_told_with_the_boots_of_a_claim_and_looked_at_until_then(
    boots: int, clock: TestbedClock, told: bool
) -> None:
    noise = 0.0 if clock == "instructions" else 0.001
    context, cache = context_of(
        GRAPH, ends({"a": 0.02, "b": GAIN}, boots=boots, noise=noise), wanted=goal(clock=clock)
    )
    choice = choose_testbeds(context, cache, False)
    assert ({one.way for one in choice.each} == {1, -1}) is told
    assert choice.differ is (False if told else None)


def test_a_direction_is_told_only_where_its_own_evidence_suffices_among_so_many_testbeds() -> None:
    """a scatters so that its change is beyond doubt among two testbeds, and may be one of fifty by chance."""
    loud = ends({"a": 0.05}, boots=8, noise=0.045)
    quiet = [seen for seen in ends({"a": LOSS, "b": GAIN}, boots=8) if seen.testbed == "b"]
    context, _ = context_of(GRAPH, [*loud, *quiet])
    ways = [[one.way for one in _compare_on_each(context, ["a", "b"], tries)] for tries in (2, 50)]
    assert ways == [[1, -1], [0, -1]]


def test_each_of_several_testbeds_spends_its_share_of_alpha() -> None:
    """The same boots are enough among two testbeds and not among twelve."""
    quiet = [seen for seen in ends({"a": LOSS, "b": NONE}, noise=0.0) if seen.testbed == "b"]
    loud = ends({"a": LOSS}, boots=5, noise=0.065)
    context, _ = context_of(GRAPH, [*loud, *quiet])
    assert [_compare_on_each(context, ["a"], tries)[0].shows for tries in (2, 12)] == ["shown", "open"]


def test_that_a_testbed_shows_the_change_needs_the_boots_of_a_claim() -> None:
    context, _ = context_of(GRAPH, ends({"a": LOSS, "b": NONE}))
    assert [_compare_on_each(context, ["a"], tries)[0].shows for tries in (2, 12)] == ["shown", "open"]


def test_a_testbed_that_is_not_used_is_released_and_the_conclusion_says_so() -> None:
    choice = chosen({"a": LOSS, "b": NONE, "c": LOSS}, True)
    released = choice.release("b")
    assert released == Released(("a", "c"), "The change is shown on a and c, not on b: searched on a and c.")
    assert choice.release("a") is choice.release(None) is None
    assert choice.release("new") == released
    told = choice.add_to(Conclusion(Ending.CULPRIT, "Proven."))
    assert told.summary == f"Proven. {released.reason}"
    assert told.searched_on == ("a", "c")


def test_opposite_directions_are_told_first() -> None:
    choice = chosen({"a": 0.02, "b": GAIN}, False)
    text = choice.add_to(Conclusion(Ending.NOT_REPRODUCED, "Less than the threshold.")).summary
    assert text.startswith("The testbeds differ in direction: +2.1")
    assert " on a, -12." in text
    assert text.endswith(" on b. Less than the threshold.")
    same = chosen({"a": 0.02, "b": 0.03}, False)
    assert same.add_to(Conclusion(Ending.NOT_REPRODUCED, "Less.")).summary == "Less."
    assert [one.way for one in same.each] == [0, 0], "looked for only where testbeds contradict each other"


def test_a_change_that_is_proven_and_does_not_reach_the_threshold_is_absent() -> None:
    choice = chosen({"a": 0.04, "b": NONE}, False, boots=4)
    assert (set(shows(choice).values()), choice.differ) == ({"absent"}, False)


def test_many_testbeds_are_compared_one_by_one_only_once_all_together_have_a_verdict() -> None:
    many = {f"t{i}": LOSS for i in range(MAX_ALWAYS_COMPARED + 1)}
    assert chosen(many, None, boots=1).each == ()
    assert len(chosen(many, True, boots=1).each) == len(many)
    del many["t0"]
    assert len(chosen(many, None, boots=1).each) == len(many)


def test_one_testbed_is_judged_as_ever() -> None:
    for differ in (True, False, None):
        choice = chosen({"a": LOSS}, differ)
        assert (choice.differ, choice.used, choice.each) == (differ, (), ())


def test_the_planner_searches_where_it_is_shown_and_releases_the_other() -> None:
    visits = ends({"a": LOSS, "b": NONE}, layouts=3)
    planner = Planner()

    def asked(testbed: str | None) -> Measure | Conclusion | Released:
        return planner.next(fold(GRAPH, goal(), records_of(visits), idle=testbed))

    assert isinstance(asked("b"), Released)
    trial = asked("a")
    assert isinstance(trial, Measure)
    assert trial.purpose == "search"
    assert planner.so_far(fold(GRAPH, goal(), records_of(visits))).searched_on == ("a",)
    decider = planner._decider(fold(GRAPH, goal(), records_of(visits), idle="a"))
    decider.decide()
    assert {visit.testbed for visit in decider.context.state.visits} == {"a"}


def test_boots_of_the_search_do_not_change_the_choice() -> None:
    seen = ends({"a": LOSS, "b": NONE})
    later = [replace(one, purpose="search", values=(500.0, 900.0, 100.0)) for one in seen]
    context, cache = context_of(GRAPH, [*seen, *later])
    assert choose_testbeds(context, cache, True) == chosen({"a": LOSS, "b": NONE}, True)
