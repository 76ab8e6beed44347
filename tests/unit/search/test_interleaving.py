"""Interleaved comparisons: whose turn it is, how many runs, which code layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Measure, Purpose
from bisector.model.goal import Goal
from bisector.model.records import Ran, Record
from bisector.search.interleaving import (
    BOOTS_BEFORE_MORE_LAYOUTS,
    BOOTS_THAT_COMPARE,
    EXACT_CLOCK_RUNS,
    FIRST_BOOT_RUNS,
    MOST_LAYOUTS_WITHOUT_SCATTER,
    SCATTER_LAYOUTS,
    boots_side_by_side,
    boots_support_claim,
    cheapest_runs_per_boot,
    fewest_boots,
    fewest_boots_without_loss,
    interleaved_boots,
    min_boots_per_side,
    next_interleaved,
    sufficient_runs_per_boot,
)
from tests.support.searching import Seen, context_of, goal, graph_of, linear, seen_on_unequal_testbeds

NAMES = {1: "its parent", 2: "the suspect"}


def following(
    visits: list[Seen],
    *,
    target: int = 3,
    layouts: Sequence[int] = (0,),
    wanted: Goal | None = None,
    idle: str | None = None,
    fewest: int = 2,
    records: Sequence[Record] = (),
) -> Measure:
    context, _ = context_of(linear(4), visits, wanted=wanted, idle=idle, records=records)
    return next_interleaved(context, (2, 1), "certify", target, layouts, "why", NAMES, fewest)


def seen(*commits: int, testbed: str = "t") -> list[Seen]:
    return [Seen(c, purpose="certify", testbed=testbed) for c in commits]


def test_boots_follow_abba() -> None:
    visits: list[Seen] = []
    for _ in range(8):
        visits += seen(following(visits).commit)
    assert [v.commit for v in visits] == [2, 1, 1, 2, 2, 1, 1, 2]


def test_boots_of_a_proof_compare_with_those_of_the_other_side_near_them() -> None:
    """2 was the parent of 3 before; one of its boots is near enough to the first of 1."""
    near = BOOTS_THAT_COMPARE + 1  # and one for the parent
    before, after = seen(2, 3, 3, 2, 2), seen(1, 2, 2, 1)

    def numbers(
        visits: list[Seen],
        *,
        waiting: bool = False,
        wanted: Goal | None = None,
        purpose: Purpose = "certify",
        graph: CommitGraph | None = None,
    ) -> list[int]:
        context, _ = context_of(
            graph or linear(4), [replace(v, purpose=purpose) for v in visits], wanted=wanted
        )
        boots = interleaved_boots(context, (1, 2), purpose, waiting=waiting)
        return [int(v.boot.removeprefix("b")) for v in boots]

    between = [Seen(0)] * (near - 1)
    assert numbers([*before, *between, *after]) == [4, 13, 14, 15, 16]
    assert numbers([*before, Seen(0), *between, *after]) == [14, 15, 16, 17]
    elsewhere = [Seen(0, testbed="u")] * 20
    assert numbers([*seen(2), *elsewhere, *after]) == [0, 21, 22, 23, 24]
    assert numbers([*before, *seen(1, 1, testbed="u")]) == []
    exact = goal(clock="instructions")
    far = [*before, Seen(0), Seen(0, (110.0, 110.1, 109.9)), *between[1:], *after]
    every = [0, 3, 4, 14, 15, 16, 17]
    assert numbers(far, wanted=exact) == numbers(far, purpose="verify") == every, "though 0 has two levels"
    merge = graph_of(((), (0,), (0, 1), (2,), (3,)))
    assert numbers(far, graph=merge) == every[2:], "one more boot between, for the second parent"
    assert numbers(seen(1, *[2] * near, 2)) == numbers(seen(2, *[1] * near, 1)) == [*range(near + 1)]
    assert numbers(seen(2, *[2] * near, 1)) == numbers(seen(1, *[1] * near, 2)) == [*range(1, near + 2)]
    # What waits for the other side counts for whose turn it is.
    assert numbers(before, waiting=True) == [0, 3, 4]
    assert numbers([*before, *between[2:]], waiting=True) == [3, 4]
    assert numbers([*before, *between], waiting=True) == [4]
    assert numbers([*before, *between[2:]]) == []


def test_a_parent_that_was_a_suspect_long_before_is_booted_again() -> None:
    before, between = seen(2, 3, 3, 2, 2, 3, 3, 2), [Seen(0)] * 20
    turns = [*before, *between]
    for _ in range(6):
        turns += seen(following(turns).commit)
    assert [v.commit for v in turns[28:]] == [2, 1, 1, 2, 2, 1]
    context, _ = context_of(linear(4), [*before, *between, *seen(1, 2, 1)])
    assert boots_side_by_side(context, (1, 2), "certify") == 1


def test_each_testbed_has_its_own_order() -> None:
    """Levels of testbeds differ, so each one measures both sides."""
    visits = [*seen(2, testbed="a"), *seen(2, testbed="b")]
    assert following(visits, idle="a").commit == 1
    assert following(visits, idle="b").commit == 1
    assert following(visits, idle="c").commit == 2
    assert following([*visits, *seen(1, testbed="a")], idle="b").commit == 1
    elsewhere = following([replace(visits[0], layout=1)], idle="b", layouts=(1, 2))
    assert (elsewhere.commit, elsewhere.layout) == (2, 2), "of each layout there is one"
    assert elsewhere.reason == "why: boot 2 of the suspect, 3 runs"


def test_boots_of_another_purpose_do_not_count() -> None:
    assert following([Seen(2, purpose="search")]).commit == 2


def test_a_live_boot_goes_on_in_parts_until_it_has_the_runs_wanted() -> None:
    alive = Seen(2, purpose="certify", live=True)
    more = following([alive], target=9)
    assert (more.boot, more.runs, more.commit) == ("b0", 3, 2)
    assert more.left == pytest.approx(3 * (5.0 + 9 * 1.0))
    assert more.reason == "why: 3 more runs in this boot of the suspect"
    assert following([alive], target=4).runs == 1
    assert following([alive], target=3).boot is None
    warm_up = Ran("b0", 3, {"real": 100.0}, 1.0, 1.0, warmup=True)
    assert following([alive], target=4, records=[warm_up]).boot == "b0"
    assert following([replace(alive, commit=3)], target=9).boot is None, "a boot of another proof"


def test_first_boots_are_short_and_later_ones_as_asked() -> None:
    assert following([], target=30).runs == FIRST_BOOT_RUNS
    assert following([], target=2).runs == 2
    assert following(seen(2, 1, 1), target=30).runs == FIRST_BOOT_RUNS
    assert following(seen(2, 1, 1, 2), target=30).runs == 10
    assert following(seen(2, 1, 1, 2), target=1000).runs == 22, "a third of the 64 that a boot may have"
    exact = goal(clock="instructions")
    assert [following([], target=t, wanted=exact).runs for t in (1, 30)] == [1, EXACT_CLOCK_RUNS]


def test_layouts_take_turns_on_each_side() -> None:
    visits: list[Seen] = []
    for _ in range(8):
        trial = following(visits, layouts=(1, 2))
        visits.append(Seen(trial.commit, purpose="certify", layout=trial.layout))
    for commit in (1, 2):
        assert sorted(v.layout for v in visits if v.commit == commit) == [1, 1, 2, 2]
    assert following([], layouts=(1, 2), wanted=goal(clock="instructions")).layout == 0


def test_a_comparison_that_stays_open_goes_over_more_layouts() -> None:
    count = BOOTS_BEFORE_MORE_LAYOUTS
    assert following(seen(*[2, 1] * (count - 1))).layout == 0
    assert following(seen(*[2, 1] * count)).layout == 1
    second_only = [Seen(c, purpose="certify", layout=2) for c in [2, 1] * count]
    assert following(second_only, layouts=(1, 2)).layout == 1, "the first of those that were asked for"
    three = [Seen(c, purpose="certify", layout=1 + b // 2 % 3) for b, c in enumerate([2, 1] * 18)]
    assert following(three[: 2 * count], layouts=(1, 2)).layout in (1, 2, 3), "one more, not two"
    six = [Seen(c, purpose="certify", layout=1 + b // 2 % 6) for b, c in enumerate([2, 1] * count)]
    assert following(six, layouts=range(1, 7)).layout == 5, "none is given up"


def test_only_where_binaries_scatter_layouts_grow_without_end() -> None:
    """Boots of a few binaries never tell an effect of the size of their offsets from these."""

    def layouts(asked_for: tuple[int, ...]) -> int:
        visits: list[Seen] = []
        for _ in range(160):
            trial = following(visits, layouts=asked_for)
            visits.append(Seen(trial.commit, purpose="certify", layout=trial.layout))
        return len({v.layout for v in visits})

    assert layouts((1, 2)) == MOST_LAYOUTS_WITHOUT_SCATTER
    more = (79 - BOOTS_BEFORE_MORE_LAYOUTS) // 2  # every second boot, the last decided after 79
    assert layouts(tuple(range(1, 1 + SCATTER_LAYOUTS))) == SCATTER_LAYOUTS + more


def test_runs_per_boot_follow_the_costs_and_the_noise() -> None:
    context, _ = context_of(linear(4), [Seen(c, (100.0, 101.0, 99.0, 100.0)) for c in (0, 4)])
    assert context.readings is not None
    run_sd = context.readings.run_sd
    quiet = cheapest_runs_per_boot(context, [(10 * run_sd, 1.0)])
    loud = cheapest_runs_per_boot(context, [(0.1 * run_sd, 1.0)])
    assert quiet == 1
    assert loud == pytest.approx((5.0 / 0.01) ** 0.5, abs=2)  # sqrt(boot cost / (run cost * 0.1^2))
    # 4 * 5 / boots (run sd / effect)^2 + 1
    assert [sufficient_runs_per_boot(context, run_sd, boots) for boots in (2, 4)] == [11, 6]
    assert sufficient_runs_per_boot(context, 2 * run_sd, 2) == 4
    assert sufficient_runs_per_boot(context, 0.0, 4) == 64
    assert sufficient_runs_per_boot(context, 1e-200, 4) == 5_000_001, "more than any boot has"
    exact, _ = context_of(linear(4), seen(2, 1), wanted=goal(clock="instructions"))
    assert cheapest_runs_per_boot(exact, [(0.1, 1.0)]) == EXACT_CLOCK_RUNS


def test_runs_per_boot_are_those_that_the_goal_allows_before_anything_is_known() -> None:
    few = goal(max_runs_per_boot=7)
    before, _ = context_of(linear(4), wanted=few)
    assert cheapest_runs_per_boot(before, []) == FIRST_BOOT_RUNS
    assert sufficient_runs_per_boot(before, 0.1, 4) == 7
    context, _ = context_of(linear(4), [Seen(c, (100.0, 101.0, 99.0)) for c in (0, 4)], wanted=few)
    assert cheapest_runs_per_boot(context, [(1e-6, 1.0)]) == 7


def test_a_claim_needs_boots_whose_order_could_support_it() -> None:
    assert [fewest_boots(share) for share in (0.9, 0.2, 0.05, 0.0499, 1 / 70, 0.01)] == [2, 2, 3, 4, 4, 5]


def test_a_loss_of_every_second_boot_shows_in_five_but_for_alpha() -> None:
    assert [fewest_boots_without_loss(alpha) for alpha in (0.5, 0.25, 0.05, 1 / 64, 0.01)] == [1, 2, 5, 6, 7]
    context, _ = context_of(linear(4), seen(2, 1, 1, 2, 2))
    assert boots_support_claim(context, 1, 2, "certify", 0.1), "C(5, 2) orders are ten"
    assert not boots_support_claim(context, 1, 2, "certify", 0.099)
    assert not boots_support_claim(context, 1, 2, "verify", 0.1), "boots of another purpose"
    assert [min_boots_per_side(context, "certify", share) for share in (None, 0.01)] == [3, 5]


def test_only_boots_with_runs_of_the_layouts_that_count_support_a_claim() -> None:
    boots = seen(2, 1, 1, 2, 2)
    no_run, _ = context_of(linear(4), [*boots[:4], replace(boots[4], values=())])
    assert not boots_support_claim(no_run, 1, 2, "certify", 0.1)
    layouts, _ = context_of(linear(4), [replace(v, layout=i % 2) for i, v in enumerate(boots)])
    assert boots_support_claim(layouts, 1, 2, "certify", 0.1)
    assert not boots_support_claim(layouts, 1, 2, "certify", 0.1, first_layout=1)
    assert boots_support_claim(layouts, 1, 2, "certify", 0.5, first_layout=1)


def test_thousands_of_boots_have_more_orders_than_a_float_can_hold() -> None:
    """Their number times alpha once ended searches where boots scatter far more than runs."""
    context, _ = context_of(linear(4), [Seen(c, (1.0,), purpose="certify") for c in (2, 1)] * 600)
    assert boots_support_claim(context, 1, 2, "certify", 0.05)


def test_boots_compare_within_their_testbed_only() -> None:
    boots = [Seen(c, purpose="certify", testbed=t) for t in ("a", "b") for c in (2, 1, 1, 2)]
    context, _ = context_of(linear(4), boots)
    assert boots_support_claim(context, 1, 2, "certify", 1 / 36)
    assert not boots_support_claim(context, 1, 2, "certify", 0.027)
    apart, _ = context_of(linear(4), [replace(b, testbed=f"t{b.commit}") for b in boots])
    assert not boots_support_claim(apart, 1, 2, "certify", 0.5)


def test_an_exact_clock_needs_no_orders() -> None:
    exact, _ = context_of(linear(4), seen(2, 1, 1, 2), wanted=goal(clock="instructions"))
    assert boots_support_claim(exact, 1, 2, "certify", 1e-6)
    one, _ = context_of(linear(4), seen(2, 1), wanted=goal(clock="instructions"))
    assert not boots_support_claim(one, 1, 2, "certify", 0.05)
    assert [min_boots_per_side(one, purpose, 0.05) for purpose in ("verify", "certify")] == [1, 2]
    ends = [Seen(c, purpose="verify") for c in (2, 1)]
    one, _ = context_of(linear(4), ends, wanted=goal(clock="instructions"))
    assert boots_support_claim(one, 1, 2, "verify", 0.05)


def test_an_exact_clock_needs_boots_that_could_have_differed() -> None:
    """A boot on each of two testbeds is never compared with another of its commit."""

    def supported(*testbeds: str) -> bool:
        boots = [Seen(c, purpose="certify", testbed=t) for t in testbeds for c in (2, 1)]
        context, _ = context_of(linear(4), boots, wanted=goal(clock="instructions"))
        return boots_support_claim(context, 1, 2, "certify", 0.05)

    assert [supported("a", "b"), supported("a", "b", "a")] == [False, True]
    boots = [Seen(c, purpose="certify", testbed=t) for c, t in ((1, "a"), (1, "a"), (2, "b"), (2, "b"))]
    apart, _ = context_of(linear(4), boots)
    assert boots_side_by_side(apart, (1,), "certify") == 2
    assert boots_side_by_side(apart, (1, 2), "certify") == boots_side_by_side(apart, (1,), "verify") == 0


def test_proofs_that_were_made_while_boots_repeated_are_open_again_when_they_differ() -> None:
    scattering = [*seen(2, 1, 1, 2), Seen(3), Seen(3, (110.0, 110.1, 109.9))]
    context, _ = context_of(linear(4), scattering, wanted=goal(clock="instructions"))
    assert not boots_support_claim(context, 1, 2, "certify", 0.05)
    assert [min_boots_per_side(context, p, 0.05) for p in ("verify", "certify")] == [3, 3]


def test_the_time_left_falls_with_the_boots_and_never_to_zero() -> None:
    left = [following(seen(*[2, 1, 1, 2][:k])).left for k in range(5)]
    visit = 5.0 + 3 * 1.0
    assert left[1:] == pytest.approx([3 * visit, 2 * visit, visit, visit])


def test_runs_per_boot_follow_the_noise_of_the_testbed_that_asks() -> None:
    asked = {
        name: context_of(linear(4), seen_on_unequal_testbeds(), idle=name)[0] for name in ("loud", "quiet")
    }
    enough = {name: sufficient_runs_per_boot(context, 0.01, 2) for name, context in asked.items()}
    assert enough["quiet"] < 3 < enough["loud"]
    boots = asked["quiet"].measured.boot_ratio_on(1)
    best = {name: cheapest_runs_per_boot(context, [(0.001 / boots, 1.0)]) for name, context in asked.items()}
    alone = asked["quiet"].measured.run_sd_on(1) / 0.001
    assert best["quiet"] == pytest.approx((5.0 * alone**2) ** 0.5, abs=1.0)
