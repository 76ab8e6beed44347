"""The verification of the ends: each condition of the verdict, and what is measured next."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bisector.model.goal import Goal
from bisector.search.context import SearchContext
from bisector.search.endpoints import (
    ENDS_BINARY_SPREAD_PRIOR,
    boots_before_claim,
    compare_ends,
    ends_differ,
    next_trial,
    runs_in_a_boot,
    search_agrees,
    why_undecided,
)
from bisector.search.sequential_test import Evidence
from tests.support.searching import Seen, context_of, goal, linear, make_evidence

NEED = math.log(1 / 0.05)
YES = make_evidence(NEED + 0.01, -9.0, 0.05, 0.1, 0.15, 0.02, 0.9, ((0.001, 1.0),))
NO = make_evidence(-3.0, NEED + 0.01, -0.01, 0.0, 0.01, 0.01, 0.0, ((0.001, 1.0),))
RUNS = (100.0, 100.1, 99.9)
FIVE = (0, 1, 2, 0, 1)
"""The layouts of five boots, which 'not reproduced' needs of each end."""
EXACT = goal(clock="instructions")


def ends(
    layouts: tuple[int, ...] = (0, 1, 2), runs: tuple[float, ...] = RUNS, wanted: Goal | None = None
) -> SearchContext:
    """Return a context with a boot of each end in each of these layouts."""
    visits = [Seen(c, runs, "verify", k) for k in layouts for c in (0, 8)]
    return context_of(linear(8), visits, wanted=wanted)[0]


def test_a_proven_loss_that_may_reach_the_threshold_is_reproduced() -> None:
    assert ends_differ(ends(), YES) is True
    assert ends_differ(ends(), replace(YES, log_e_change=NEED - 0.01)) is None
    assert ends_differ(ends(), replace(YES, estimate=-0.1)) is None
    assert ends_differ(ends(), None) is None


def test_a_proven_loss_that_hardly_reaches_the_threshold_is_not_reproduced() -> None:
    assert ends_differ(ends(FIVE), replace(YES, p_reaches_threshold=0.049)) is False
    assert ends_differ(ends(), replace(YES, p_reaches_threshold=0.051)) is True


def test_what_is_proven_to_be_below_the_threshold_is_not_reproduced() -> None:
    assert ends_differ(ends(FIVE), NO) is False
    assert ends_differ(ends(FIVE), replace(NO, log_e_below=NEED - 0.01)) is None
    assert ends_differ(ends(FIVE), replace(YES, log_e_below=NEED + 0.01)) is False


@pytest.mark.parametrize("evidence", [NO, replace(YES, p_reaches_threshold=0.01)])
def test_not_reproduced_needs_three_layouts_of_both_ends(evidence: Evidence) -> None:
    assert ends_differ(ends(FIVE), evidence) is False
    assert ends_differ(ends((0, 1, 0, 1, 0)), evidence) is None
    two = ((8, k) for k in (0, 1, 0, 1, 0))
    good_only = [Seen(c, RUNS, "verify", k) for c, k in (*((0, k) for k in FIVE), *two)]
    assert ends_differ(context_of(linear(8), good_only)[0], evidence) is None
    bad_only = [Seen(8 - v.commit, v.values, v.purpose, v.layout) for v in good_only]
    assert ends_differ(context_of(linear(8), bad_only)[0], evidence) is None
    assert ends_differ(ends((0, 0), wanted=EXACT), evidence) is False  # layouts do not matter there


@pytest.mark.parametrize("evidence", [NO, replace(YES, p_reaches_threshold=0.001)])
def test_not_reproduced_needs_boots_among_which_a_loss_of_every_second_one_shows(evidence: Evidence) -> None:
    seen = [Seen(c, RUNS, "verify", k) for k in FIVE for c in (0, 8)]
    for missing in (0, 8):
        fewer = list(seen)
        fewer.remove(next(v for v in seen if v.commit == missing))
        assert ends_differ(context_of(linear(8), fewer)[0], evidence) is None
    more = replace(evidence, log_e_below=9.0)
    assert ends_differ(ends((0, 1, 2) * 2, wanted=goal(alpha=0.01)), more) is None
    assert ends_differ(ends((0, 1, 2) * 2 + (0,), wanted=goal(alpha=0.01)), more) is False


def slow_at(commit: int, slow: int, of: int) -> SearchContext:
    """Return a context where so many of an end's boots lie 50% above all others, which agree."""
    seen = []
    for k in range(of):
        for c in (0, 8):
            level = 150.0 if c == commit and k < slow else 100.0 + 0.01 * (k % 3)
            seen.append(Seen(c, tuple(level + y - 100 for y in RUNS), "verify", k % 3))
    return context_of(linear(8), seen)[0]


def test_a_loss_of_a_part_of_the_boots_is_no_loss_that_is_denied() -> None:
    one, some = slow_at(8, 1, 6), slow_at(8, 8, 20)
    assert ends_differ(one, NO) is None, "the mean is above the threshold"
    assert why_undecided(one, NO) == "", "more boots may tell"
    assert ends_differ(some, NO) is None
    assert why_undecided(some, NO).startswith(
        "8 of 20 boots of bad and 0 of 20 of good lie far from the others"
    )
    assert why_undecided(some, replace(NO, log_e_below=NEED - 0.01)) == "", "typical boots may differ, too"
    assert why_undecided(some, None) == ""
    assert ends_differ(slow_at(0, 8, 20), NO) is False, "bad has lost nothing"
    assert ends_differ(slow_at(8, 1, 30), NO) is False, "the mean is below the threshold"


def test_each_end_needs_the_boots_of_a_claim() -> None:
    assert ends_differ(ends((0, 0, 0)), YES) is True
    one = [Seen(c, RUNS, "verify") for c in (0, 8, 8, 0, 8)]
    assert ends_differ(context_of(linear(8), one)[0], YES) is None
    assert ends_differ(ends((0,), wanted=EXACT), YES) is True  # enough to search on


def test_boots_of_an_exact_clock_that_differ_count_as_those_of_any_clock() -> None:
    """The search itself may have seen it, by boots of any commit."""
    alike = [Seen(0, RUNS, "verify"), Seen(8, RUNS, "verify")]
    twice = [Seen(5, RUNS), Seen(5, tuple(1.01 * y for y in RUNS))]
    assert ends_differ(context_of(linear(8), [*alike, twice[0], twice[0]], wanted=EXACT)[0], YES) is True
    assert ends_differ(context_of(linear(8), [*alike, *twice], wanted=EXACT)[0], YES) is None
    assert ends_differ(context_of(linear(8), [*alike * 2, *twice], wanted=EXACT)[0], YES) is None
    assert ends_differ(context_of(linear(8), [*alike * 3, *twice], wanted=EXACT)[0], YES) is True


def test_what_an_exact_clock_has_denied_holds_for_ends_that_look_alike() -> None:
    """Of even modes three boots of each end are alike, and show a loss, one time in 64."""
    apart = [Seen(c, (100.0 + 10.0 * (c > 0),) * 3, "verify") for c in (0, 8)] * 3
    twice = [Seen(5, (100.0,)), Seen(5, (110.0,))]
    for seen, limit in (([*apart, twice[0], twice[0]], False), ([*apart, *twice], True)):
        found = compare_ends(*context_of(linear(8), seen, wanted=EXACT))
        assert found is not None
        assert (found.log_e_change < NEED) is limit


@pytest.mark.parametrize("evidence", [NO, replace(YES, p_reaches_threshold=0.01)])
def test_not_reproduced_is_claimed_by_two_boots_of_each_end_under_an_exact_clock(evidence: Evidence) -> None:
    assert ends_differ(ends((0,), wanted=EXACT), evidence) is None
    three = [Seen(c, RUNS, "verify") for c in (0, 8, 8)]
    assert ends_differ(context_of(linear(8), three, wanted=EXACT)[0], evidence) is None
    assert ends_differ(ends((0, 0), wanted=EXACT), evidence) is False


def test_ends_are_booted_again_before_a_claim_that_rests_on_them() -> None:
    def again(*commits: int, wanted: Goal = EXACT, testbeds: str = "tttttt") -> tuple[int, int] | None:
        seen = [Seen(c, RUNS, "verify", testbed=t) for c, t in zip(commits, testbeds, strict=False)]
        trial = boots_before_claim(context_of(linear(8), seen, wanted=wanted)[0])
        return None if trial is None else (trial.commit, trial.runs)

    order = (0, 8, 8, 0, 0, 8)
    assert [again(*order[:k]) for k in (2, 3, 4, 5, 6)] == [(8, 2), (0, 2), (0, 2), (8, 2), None]
    assert again(*order[:4], wanted=goal(clock="instructions", alpha=0.2)) is None, "two have six orders"
    assert again(0, 8, wanted=goal()) is None, "no clock is exact there, so the ends have boots enough"
    assert again(*order, testbeds="aaaabb") is not None, "boots on two testbeds show no repetition"


def test_boots_of_the_search_may_take_back_what_the_ends_showed() -> None:
    """Once boots differ, the ends are told apart by the order of their first boots, which may be chance."""
    apart = [Seen(c, (100.0 + 10.0 * (c > 0),) * 3, "verify") for c in (0, 8)] * 4
    later = [Seen(c, (y,)) for c, y in ((0, 110.0), (8, 100.0), (0, 110.0), (8, 100.0))]
    assert search_agrees(context_of(linear(8), apart, wanted=EXACT)[0])
    assert not search_agrees(context_of(linear(8), [*apart, *later], wanted=EXACT)[0])
    assert search_agrees(context_of(linear(8), [*apart, *later])[0]), "other clocks drift"


def test_a_merge_base_is_booted_again_too() -> None:
    seen = [Seen(c, RUNS, "verify") for c in (0, 8, 3, 8, 0, 0, 8, 3)]
    context, _ = context_of(linear(8), seen, wanted=EXACT)
    trial = boots_before_claim(context, (3,))
    assert boots_before_claim(context) is None
    assert trial is not None
    assert trial.commit == 3
    assert trial.reason.startswith("boot again before what the ends show is claimed")
    assert "boot 3 of the merge base" in trial.reason


def test_the_run_noise_must_be_known_from_three_degrees_of_freedom() -> None:
    """Two boots of one run on each side have two degrees of freedom: nothing is decided."""
    few = ends((0, 0), runs=(100.0,))
    assert few.readings is not None
    assert few.readings.run_df < 3
    assert ends_differ(few, YES) is None
    assert ends_differ(ends((0, 0), runs=(100.0,), wanted=goal(clock="instructions")), YES) is True


def test_only_boots_for_the_verification_count() -> None:
    visits = [Seen(c, (v, v + 0.1, v - 0.1), "verify") for c, v in ((0, 100.0), (8, 110.0))] * 2
    context, cache = context_of(linear(8), visits)
    more, cache_more = context_of(linear(8), [*visits, Seen(8, (150.0, 151.0), "search")])
    first, second = compare_ends(context, cache), compare_ends(more, cache_more)
    assert first is not None
    assert second == first
    assert first.log_e_change > 5
    assert first.estimate == pytest.approx(math.log(1.1), abs=0.01)


def test_two_binaries_do_not_show_that_there_is_no_loss() -> None:
    """Only 'not reproduced' is held back by the possible scatter of binaries, the proof of a loss is not."""
    visits = [Seen(c, (100.0, 100.02, 99.98), "verify") for c in (0, 8)] * 4
    context, cache = context_of(linear(8), visits)
    one_layout = compare_ends(context, cache)
    several = [Seen(c, (100.0, 100.02, 99.98), "verify", k) for k in range(4) for c in (0, 8)]
    context, cache = context_of(linear(8), several)
    four_layouts = compare_ends(context, cache)
    assert one_layout is not None
    assert four_layouts is not None
    assert one_layout.log_e_below < four_layouts.log_e_below


@pytest.mark.parametrize("gain", [30.0, 50.0, 100.0, 200.0])
def test_the_larger_a_gain_the_sooner_other_layouts_are_asked_for(gain: float) -> None:
    """A prior without large gains took the third boot for a sign that two binaries may hide any loss."""
    scatter = ((0, 0.0), (8, 0.4 - gain), (8, -1.1 - gain))
    levels = [(commit, 100 * math.exp(percent / 100)) for commit, percent in scatter]
    seen = [Seen(commit, (level, 1.002 * level, 0.998 * level), "verify") for commit, level in levels]
    found = compare_ends(*context_of(linear(8), seen))
    assert found is not None
    assert found.log_e_below > 0.5 * NEED


def test_two_binaries_may_scatter_by_nothing_up_to_the_threshold() -> None:
    """A prior that knows no quiet binaries never denies a loss; one without wide ones denies it wrongly."""
    spreads, priors = zip(*ENDS_BINARY_SPREAD_PRIOR, strict=True)
    assert list(spreads) == sorted(set(spreads))
    assert (spreads[0], spreads[-1]) == (0.0, 1.0)
    assert sum(priors) == pytest.approx(1.0)
    assert max(priors) == priors[0] > 0.5
    assert min(priors) > 0


def test_reasons_and_layouts_follow_the_evidence() -> None:
    context = ends((0, 0))
    assert next_trial(context, None).reason.startswith("verify that the ends differ: boot 3 of good")
    assert "(odds 20 to 1 so far, 20 wanted)" in next_trial(context, YES).reason
    assert "odds beyond a million" in next_trial(context, replace(YES, log_e_change=99.0)).reason
    open_yet = next_trial(context, replace(NO, log_e_below=0.49 * NEED))
    assert open_yet.reason.startswith("verify that the ends differ")
    assert open_yet.layout == 0, "another would be a build for nothing"
    denied = next_trial(context, NO)
    assert denied.reason.startswith("make sure that the ends do not differ")
    assert denied.layout == 1


def test_a_large_difference_takes_fewer_runs_in_a_boot_and_none_is_sought_below_the_threshold() -> None:
    """The smaller an estimate, the more runs; near zero they would have no bound."""
    context = ends(runs=(90.0, 100.0, 110.0))
    runs = [
        runs_in_a_boot(context, replace(YES, estimate=share * context.threshold), 3) for share in (4, 1, 0.1)
    ]
    assert runs[0] < runs[1] == runs[2]
