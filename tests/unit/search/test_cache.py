"""What is kept between decisions depends on the data alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bisector.model.dag import Floats
from bisector.model.decisions import Measure, Purpose
from bisector.search import cache as cache_module
from bisector.search import context as context_module
from bisector.search.cache import MAX_POSTERIORS, PlannerCache
from bisector.search.context import SearchContext
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis
from bisector.search.measurement import Readings
from bisector.search.noise_screening import screen_noise_hypotheses
from tests.support.searching import Seen, context_of, goal, linear

GOOD, BAD = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9)
VISITS = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 2]


@pytest.fixture
def screened(monkeypatch: pytest.MonkeyPatch) -> list[DesignMatrix]:
    """The designs by which noise was judged."""
    found: list[DesignMatrix] = []

    def keep(design: DesignMatrix, drifting: DesignMatrix | None) -> tuple[NoiseHypothesis, ...]:
        found.append(design)
        return screen_noise_hypotheses(design, drifting)

    monkeypatch.setattr(cache_module, "screen_noise_hypotheses", keep)
    return found


def test_equal_data_give_the_same_posterior_and_other_data_another() -> None:
    context, cache = context_of(linear(16), VISITS)
    again = cache.context(context.state)
    first = cache.posterior(context, (), 0.1)
    assert cache.posterior(again, (), 0.1) is first
    assert cache.posterior(context, (), 0.2) is not first
    assert cache.posterior(context, ((5,),), 0.1) is not first
    fewer = cache.restrict(context, context.state.visits[:3])
    assert cache.posterior(fewer, (), 0.1) is not first


def test_equal_data_give_the_same_design_and_other_data_another() -> None:
    """A design of another effect or of other proven changes would be a posterior of another question."""
    context, cache = context_of(linear(16), VISITS)
    first = cache.design(context, (), 0.1, drifts=False)
    assert cache.design(cache.context(context.state), (), 0.1, drifts=False) is first

    assert cache.design(context, (), 0.2, drifts=False).effect == 0.2
    assert cache.design(context, ((5,),), 0.1, drifts=False).fixed.shape[1] == 2


def test_a_fresh_cache_gives_the_same_numbers() -> None:
    """A search that was stopped decides as one that ran through, however much the old one had kept."""
    context, cache = context_of(linear(16), [*VISITS, *(Seen(8, GOOD) for _ in range(6))])
    for k in range(2, 11):
        cache.posterior(cache.restrict(context, context.state.visits[:k]), (), 0.1)
    old = cache.posterior(context, (), 0.1)
    fresh = PlannerCache(context.graph, None)
    new = fresh.posterior(fresh.context(context.state), (), 0.1)
    assert np.array_equal(old.joint, new.joint)
    assert old.fits.noises == new.fits.noises


def test_the_least_recently_used_posterior_goes_first() -> None:
    context, cache = context_of(linear(16), VISITS)
    first = cache.posterior(context, (), 0.1)
    second = cache.posterior(context, (), 0.11)
    for k in range(MAX_POSTERIORS - 1):
        cache.posterior(context, (), 0.2 + k / 100)
        assert cache.posterior(context, (), 0.1) is first
    assert cache.posterior(context, (), 0.11) is not second


def test_results_are_computed_once() -> None:
    _, cache = context_of(linear(4))
    calls: list[int] = []
    for _ in range(3):
        cache.get_or_compute("key", lambda: calls.append(1))
    assert calls == [1]


def test_a_part_of_the_visits_keeps_everything_else() -> None:
    under_way = (Measure(4, 2, "search", ""),)
    context, cache = context_of(linear(16), VISITS, idle="t", wanted=goal(scan=True), pending=under_way)
    part = cache.restrict(context, context.state.visits[:2])
    assert len(part.state.visits) == 2
    assert part.goal is context.goal
    assert part.state.binaries == context.state.binaries
    assert part.state.costs == context.state.costs
    assert (part.state.idle, part.state.pending) == (None, ())
    assert cache.restrict(context, context.state.visits) is context


def test_a_part_is_summarised_once_and_anew_with_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    summarised: list[int] = []

    def count(part: SearchContext) -> Readings | None:
        summarised.append(len(part.state.visits))
        return context_module.summarised(part)

    monkeypatch.setattr(cache_module, "summarised", count)
    context, cache = context_of(linear(16), VISITS)
    for _ in range(2):
        part = cache.restrict(cache.context(context.state), context.state.visits[:3])
        assert part.measured.boot == context.measured.boot[:3]
    assert summarised == [3]
    more = cache.context(context_of(linear(16), [*VISITS[:2], Seen(0, (*GOOD, 100.2)), VISITS[3]])[0].state)
    assert cache.restrict(more, more.state.visits[:3]).measured.runs.tolist() == [3, 3, 4]
    assert summarised == [3, 3]


def test_a_part_of_the_visits_has_the_units_of_the_whole(screened: list[DesignMatrix]) -> None:
    """A reading of zero has no logarithm, so all levels become linear: the ends, earlier proofs, noise."""
    eight = [*VISITS, *(Seen(4) for _ in range(3)), Seen(4, (0.0, 0.0, 0.0), testbed="u")]
    positive, cache = context_of(linear(16), [*eight[:7], Seen(4)])
    part = cache.restrict(positive, positive.state.visits[:4])
    assert part.measured.scale.log
    cache.posterior(positive, (), 0.1)
    zero = cache.context(context_of(linear(16), eight)[0].state)
    linear_part = cache.restrict(zero, zero.state.visits[:4])
    on_one = cache.only_on(zero, ("t",))
    for context in (zero, linear_part, on_one, cache.restrict(on_one, on_one.state.visits[:3])):
        assert not context.measured.scale.log
    assert linear_part.data_key != part.data_key
    assert linear_part.readings_key != part.readings_key
    cache.posterior(zero, (), 0.1)
    assert {len(design.readings.boot) for design in screened} == {7}
    assert [design.readings.scale.log for design in screened] == [True, False], "the last boot is known"


def test_under_an_exact_clock_nothing_drifts() -> None:
    rising = [Seen(c, (y, y, y), "verify") for c, y in zip((0, 16) * 4, range(100, 108), strict=True)]
    wall, cache = context_of(linear(16), rising)
    assert any(n.drift for n in cache.posterior(wall, (), 0.05).fits.noises)
    exact, cache = context_of(linear(16), rising, wanted=goal(clock="instructions"))
    assert not any(n.drift for n in cache.posterior(exact, (), 0.05).fits.noises)


@pytest.mark.parametrize(
    ("clock", "at"),
    [("wall", [1, 2, 3, 4, 5, 6, 7, 9, 11, 14]), ("instructions", [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18])],
)
def test_hypotheses_are_screened_again_as_soon_as_a_visit_follows_a_checkpoint(
    screened: list[DesignMatrix], clock: str, at: list[int]
) -> None:
    """Screened too seldom, noise that shows itself late is never believed; too often, decisions take long."""
    seen = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 9]
    context, cache = context_of(linear(16), seen, wanted=goal(clock=clock))
    for k in range(1, 19):
        cache.posterior(cache.restrict(context, context.state.visits[:k]), (), 0.1)
    found = [len(design.readings.boot) for design in screened]
    assert found == at, "under an exact clock the checkpoint itself is enough"


def test_further_runs_of_the_latest_visit_have_no_hypothesis_screened_again(
    screened: list[DesignMatrix],
) -> None:
    """A live boot takes a run at a time, and at a checkpoint each would cost as much as all else decided."""
    before = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 5]
    cache = context_of(linear(16), before)[1]
    for runs in range(1, 6):
        context, _ = context_of(linear(16), [*before, Seen(8, BAD[:1] * runs)])
        found = cache.posterior(cache.context(context.state), (), 0.1)
        assert int(found.design.readings.runs[-1]) == runs, "the posterior itself has them"
    assert [len(design.readings.boot) for design in screened] == [9]


def one_boot(commit: int, level: float, purpose: Purpose = "search") -> Seen:
    return Seen(commit, tuple(level + x for x in (0.0, 0.02, -0.02)), purpose)


ODD = (0.0, 0.3, -0.3, 0.2, -0.1, 0.1, -0.2, 6.0)
"""Levels of boots of one commit about the usual one; the last lies apart."""
TAILED = [one_boot(c, (100.0 if c == 0 else 110.0) + x, "verify") for x in ODD for c in (0, 16)]


def test_where_boots_have_tails_one_that_is_alone_counts_by_its_expected_distance() -> None:
    visits = [*TAILED, one_boot(4, 100.0), one_boot(4, 100.2), one_boot(8, 113.0), one_boot(2, 100.1)]
    context, cache = context_of(linear(16), visits)
    assert context.measured.tails is not None
    assert context.measured.boot_ratio[-2] == 1.0  # by the boots of its binary: there are none
    ratio = cache.design(context, (), 0.1, drifts=False).readings.boot_ratio
    assert ratio[-2] > 2 and ratio[-1] < 1.1
    assert ratio[14] > 5 and ratio[15] > 5 and (ratio[:14] < 3).all()
    assert np.array_equal(cache.design(context, (), 0.1, drifts=True).readings.boot_ratio, ratio)


def test_tails_are_judged_at_checkpoints_or_by_what_is_given() -> None:
    context, cache = context_of(linear(16), [*TAILED, one_boot(8, 113.0)])
    part = cache.until_checkpoint(context)
    assert part.measured.tails is None  # the odd boots are the latest ones
    assert cache.design(context, (), 0.1, drifts=False).readings.boot_ratio[-1] == 1.0
    assert cache.design(context, (), 0.1, drifts=False, judged=context).readings.boot_ratio[-1] > 2


def test_by_other_visits_tails_are_others() -> None:
    lone = [one_boot(c, 110.0 + 0.2 * c) for c in range(8, 14)]
    context, cache = context_of(linear(16), [*TAILED, *lone, one_boot(8, 104.0), one_boot(4, 100.0)])
    part = cache.restrict(context, context.state.visits[:18])

    def ratio(of: PlannerCache, judged: SearchContext) -> Floats:
        return of.design(context, (), 0.1, drifts=False, judged=judged).readings.boot_ratio

    assert not np.array_equal(ratio(cache, part), ratio(cache, context))
    assert np.array_equal(ratio(PlannerCache(context.graph, None), context), ratio(cache, context))


def test_boots_of_a_clock_that_should_be_exact_have_no_tails() -> None:
    context, cache = context_of(linear(16), [*TAILED, one_boot(8, 113.0)], wanted=goal(clock="instructions"))
    design = cache.design(context, (), 0.1, drifts=False, judged=context)
    assert (design.readings.boot_ratio == 1).all()


def test_noise_is_judged_by_boots_that_count_less_in_tails(screened: list[DesignMatrix]) -> None:
    visits = [*TAILED, one_boot(8, 113.0), *(one_boot(4, 100.0) for _ in range(9))]
    context, cache = context_of(linear(16), visits)
    noises = cache.posterior(context, (), 0.1).fits.noises
    part = cache.until_checkpoint(context)
    rough, settled = (d for d in screened if d.readings.boot == part.measured.boot)
    place = part.measured.boot.index("b16")
    assert rough.readings.boot_ratio[place] == 1.0 and settled.readings.boot_ratio[place] > 2
    drifting = cache.design(part, (), 0.1, drifts=True)
    assert noises == screen_noise_hypotheses(settled, replace(drifting, readings=settled.readings))


def test_a_fresh_cache_gives_the_same_numbers_in_tails() -> None:
    context, cache = context_of(
        linear(16), [*TAILED, one_boot(8, 130.0), *(one_boot(4, 101.0) for _ in range(6))]
    )
    for k in range(8, 23):
        cache.posterior(cache.restrict(context, context.state.visits[:k]), (), 0.1)
    fresh = PlannerCache(context.graph, None)
    new = fresh.posterior(fresh.context(context.state), (), 0.1)
    assert np.array_equal(cache.posterior(context, (), 0.1).joint, new.joint)
