"""What the planner derives from a state: costs, the live boot, the sides of a comparison."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bisector.model.decisions import Measure
from bisector.model.records import Booted, Built, Marked
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.sequential_test import SpreadHypothesis, broad_effect_prior
from bisector.stats import two_sample
from bisector.stats.variance_components import VarianceComponents
from tests.support.searching import Seen, context_of, goal, linear, seen_on_unequal_testbeds


def live_boot(context: SearchContext) -> str | None:
    visit = context.live_visit("search")
    return None if visit is None else visit.boot


def test_the_live_boot_of_the_asking_testbed_goes_on() -> None:
    visits = [Seen(3, testbed="a", live=True), Seen(4, testbed="b", live=True)]
    assert live_boot(context_of(linear(8), visits, idle="a")[0]) == "b0"
    assert live_boot(context_of(linear(8), visits, idle="b")[0]) == "b1"
    assert live_boot(context_of(linear(8), visits, idle="c")[0]) is None
    assert live_boot(context_of(linear(8), visits)[0]) == "b1"


def test_no_boot_goes_on_that_has_ended_is_in_use_or_was_made_for_something_else() -> None:
    graph = linear(8)
    assert live_boot(context_of(graph, [Seen(3)])[0]) is None
    alive = Seen(3, live=True)
    busy = (Measure(3, 1, "search", "", boot="b0"),)
    assert live_boot(context_of(graph, [alive], pending=busy)[0]) is None
    assert live_boot(context_of(graph, [Seen(3, purpose="certify", live=True)])[0]) is None
    assert live_boot(context_of(graph, [alive], records=[Marked(3, "skip")])[0]) is None
    assert live_boot(context_of(graph, [alive])[0]) == "b0"


def test_levels_of_testbeds_are_subtracted_and_only_shared_testbeds_compare() -> None:
    visits = [
        Seen(1, (100.0,) * 3, testbed="a"),
        Seen(2, (110.0,) * 3, testbed="a"),
        Seen(1, (200.0,) * 3, testbed="b"),
        Seen(2, (220.0,) * 3, testbed="b"),
        Seen(1, (900.0,) * 3, testbed="c"),
    ]
    context, _ = context_of(linear(4), visits)
    sides = context.comparison_sides(1, 2, np.ones(5, dtype=bool))
    assert sides is not None
    before, after = sides
    assert len(before.location) == len(after.location) == 2
    found = context.compare(before, after, context.spread_hypotheses(None), broad_effect_prior(0.02))
    assert found.estimate == pytest.approx(np.log(1.1), abs=1e-6)
    assert found.sd < 2e-3  # what testbeds differ by is no scatter of boots
    assert context.comparison_sides(1, 2, np.array([True, False, False, True, True])) is None


def test_equal_kernels_count_as_one_where_they_can_be_tested() -> None:
    builds = [Built(c, True, 1.0, "same" if c in (2, 3, 5) else f"k{c}") for c in range(1, 7)]
    failed = Booted("x", 5, "t", False, 1.0, 0.0, failure="panic")
    context, _ = context_of(linear(8), records=[*builds, failed])
    assert context.first_same_binary == {1: 1, 2: 2, 3: 2, 4: 4, 6: 6}
    skipped, _ = context_of(linear(8), records=[*builds, Marked(2, "skip")])
    assert skipped.first_same_binary == {1: 1, 3: 3, 4: 4, 5: 3, 6: 6}
    measured, _ = context_of(linear(8), [Seen(2, (1.0,))], records=[*builds, Marked(2, "skip")])
    assert measured.first_same_binary == {1: 1, 2: 2, 3: 2, 4: 4, 5: 2, 6: 6}


def test_a_search_goes_on_where_the_first_of_two_equal_kernels_is_skipped() -> None:
    builds = [Built(c, True, 1.0, "same" if c in (3, 5) else f"k{c}") for c in (0, 3, 5, 8)]
    visits = [Seen(0, (1.0, 1.01, 0.99)), Seen(8, (2.0, 2.01, 1.99)), Seen(5, (2.0, 2.01, 1.99))]
    context, cache = context_of(linear(8), visits, records=[*builds, Marked(3, "skip")])
    assert cache.posterior(context, (), 0.1).design.tested == (0, 5, 8)


def test_other_layouts_help_unless_the_clock_is_exact_or_one_did_not_build() -> None:
    graph = linear(8)
    assert context_of(graph)[0].can_vary_layout
    assert not context_of(graph, wanted=goal(clock="instructions"))[0].can_vary_layout
    assert context_of(graph, wanted=goal(clock="instructions", modelled=True))[0].can_vary_layout
    assert not context_of(graph, records=[Built(3, False, 1.0, layout=1, failure="x")])[0].can_vary_layout
    assert context_of(graph, records=[Built(3, False, 1.0, failure="x")])[0].can_vary_layout


def test_a_layout_that_did_not_build_makes_other_data() -> None:
    """Comparisons then count ordinary builds too. A search that ran through must not use one from before."""
    before, _ = context_of(linear(8), [Seen(0), Seen(8)])
    builds = [Built(8, False, 1.0, layout=1, failure="x")]
    failed, _ = context_of(linear(8), [Seen(0), Seen(8)], records=builds)
    assert failed.data_key != before.data_key
    assert failed.readings_key == before.readings_key


def test_a_calibration_adds_its_boot_spread_to_the_prior() -> None:
    context, _ = context_of(linear(4), [Seen(0), Seen(4)])
    without = {s.boot for s in context.spread_hypotheses(None)}
    known = SearchContext(context.state, context.dag, VarianceComponents(0.01, 30.0, 0.05, 9.0))
    hypotheses = known.spread_hypotheses(None)
    assert sum(s.weight for s in hypotheses) == pytest.approx(
        sum(s.weight for s in context.spread_hypotheses(None))
    )
    assert known.readings is not None
    added = {s.boot for s in hypotheses} - without
    assert 5 * known.readings.run_sd in [pytest.approx(b) for b in added]


def test_spreads_of_the_search_are_mixed_with_those_it_seldom_sees() -> None:
    """A suspect is proven with what the search believes of binaries, and with what may yet be true."""
    context, cache = context_of(linear(4), [Seen(c, (100.0, 100.1, 99.9)) for c in (0, 4) * 3])
    posterior = cache.posterior(context, (), 0.05)
    count = len(posterior.fits.noises)
    mixed = context.spread_hypotheses(posterior)
    assert all(s.weight >= 0 for s in mixed)
    assert sum(s.weight for s in mixed[:count]) == pytest.approx(0.6)
    assert sum(s.weight for s in mixed[count:]) == pytest.approx(0.4)
    assert [s.binary for s in mixed[:count]] == [n.binary for n in posterior.fits.noises]
    assert max(s.binary for s in mixed[count:]) > 0


def test_a_clock_is_exact_until_two_boots_of_one_binary_differ_by_what_matters() -> None:
    def of(*visits: Seen, **more: Any) -> tuple[SearchContext, PlannerCache]:
        return context_of(linear(4), visits, wanted=goal(clock="instructions", **more))

    same = [Seen(0, (100.0, 100.0)), Seen(4, (110.0, 110.0)), Seen(2, (100.3, 100.3))]
    assert of()[0].exact_clock
    assert of(*same)[0].exact_clock
    assert of(*same, Seen(2, (100.7, 100.7)))[0].exact_clock  # of a threshold of 5%
    assert of(*same, Seen(2, (101.0, 101.0), layout=1))[0].exact_clock  # another binary
    assert not of(*same, modelled=True)[0].exact_clock
    whole, cache = of(*same, Seen(2, (101.0, 101.0)))
    assert not whole.exact_clock
    part = cache.restrict(whole, whole.state.visits[:2])
    assert not part.exact_clock  # scatter that was seen anywhere counts everywhere
    assert part.data_key != of(*same[:2])[0].data_key


def test_unmeasured_costs_are_assumed_and_measured_ones_averaged() -> None:
    empty, _ = context_of(linear(4))
    assert (empty.build_cost, empty.boot_cost, empty.run_cost) == (60.0, 10.0, 1.0)
    some, _ = context_of(linear(4), [Seen(0), Seen(4)])
    assert (some.build_cost, some.boot_cost, some.run_cost) == (20.0, 5.0, 1.0)
    assert some.visit_cost == 25.0


def test_the_asking_testbed_is_the_one_whose_offset_a_trial_gets() -> None:
    visits = [Seen(0, testbed="a"), Seen(4, testbed="b"), Seen(0, testbed="b")]

    def asking(idle: str | None) -> int | None:
        return context_of(linear(4), visits, idle=idle)[0].testbed

    assert (asking("a"), asking("b")) == (0, 1)
    assert asking("new") is None
    assert asking(None) == 1  # the one with the most visits


def test_a_calibration_weighs_four_fifths_and_lies_around_its_boot_spread() -> None:
    known = VarianceComponents(0.01, 30.0, 0.05, 9.0)
    context, _ = context_of(linear(4), [Seen(0), Seen(4)])
    plain = {s.boot: s.weight for s in context.spread_hypotheses(None)}
    calibrated = SearchContext(context.state, context.dag, known)
    boot_sd = 5 * calibrated.measured.run_sd
    found = {s.boot: s.weight for s in calibrated.spread_hypotheses(None)}
    near = {boot: weight for boot, weight in found.items() if weight >= 0.2}
    assert sorted(near) == pytest.approx([0.6 * boot_sd, boot_sd, 1.6 * boot_sd])
    assert [near[boot] for boot in sorted(near)] == pytest.approx([0.2, 0.4, 0.2])
    assert sum(weight for boot, weight in found.items() if boot not in near) == pytest.approx(
        0.2 * sum(plain.values())
    )


def test_a_calibration_by_an_exact_clock_has_no_spread_to_weigh() -> None:
    context, _ = context_of(linear(4), [Seen(0), Seen(4)])
    exact = SearchContext(context.state, context.dag, VarianceComponents(0.0, 30.0, 0.0, 9.0))
    none = [s.weight for s in exact.spread_hypotheses(None) if s.boot == 0.0]
    assert sum(none) > 0.8


def test_a_comparison_weighs_testbeds_by_their_noise_and_knows_no_more_of_it_than_they_tell() -> None:
    context, _ = context_of(linear(4), seen_on_unequal_testbeds())
    r = context.measured
    sides = context.comparison_sides(1, 2, np.ones(len(r.commit), dtype=bool))
    quiet = context.comparison_sides(1, 2, r.testbed == 1)
    assert sides is not None
    assert quiet is not None
    spreads, prior = context.spread_hypotheses(None), broad_effect_prior(0.02)
    both, alone = context.compare(*sides, spreads, prior), context.compare(*quiet, spreads, prior)
    assert both.sd == pytest.approx(alone.sd, rel=0.15)
    asked: list[float] = []

    def record(information: np.ndarray, total: float) -> float:
        asked.append(float(information[0] / information[1]))
        return total

    noise = SimpleNamespace(boot=r.noise.boot, pooled_df=record)
    context.__dict__["readings"] = replace(r, noise=noise)  # type: ignore[arg-type]
    context.compare(*sides, spreads, prior)
    assert asked[0] == pytest.approx((r.run_sd_on(1) / r.run_sd_on(0)) ** 2, rel=0.3)


def in_tails(shift: float) -> list[Seen]:
    """Return eight boots of each of two commits, one of them far off."""
    levels = (0.0, 0.3, -0.3, 0.2, -0.1, 0.1, -0.2, 6.0)
    return [
        Seen(c, tuple(100.0 + (c == 2) * shift + x + run for run in (0.0, 0.02, -0.02)))
        for x in levels
        for c in (1, 2)
    ]


def test_where_boots_have_tails_the_odd_ones_count_less_and_the_order_of_all_bounds_the_claim() -> None:
    context, _ = context_of(linear(4), in_tails(1.0))
    r = context.measured
    assert r.tails is not None
    sides = context.comparison_sides(1, 2, np.ones(len(r.commit), dtype=bool))
    assert sides is not None
    assert sides[0].boot_ratio[-1] > 5 and (sides[0].boot_ratio[:-1] < 2).all()
    spreads, prior = context.spread_hypotheses(None), broad_effect_prior(0.005)
    found = context.compare(*sides, spreads, prior)
    one, other = (replace(side, boot_ratio=np.ones(8)) for side in sides)
    alike = context.compare(one, other, spreads, prior)
    assert found.sd < 0.5 * alike.sd
    order = two_sample.log_e_larger(r.location, r.commit == 2, np.zeros(len(r.commit), dtype=int))
    assert alike.log_e_change < found.log_e_change == order


def test_the_order_bounds_a_claim_in_tails_though_the_others_scatter_no_more_than_runs() -> None:
    context, _ = context_of(linear(4), in_tails(1.0))
    r = context.measured
    sides = context.comparison_sides(1, 2, np.ones(len(r.commit), dtype=bool))
    assert sides is not None
    unscattered, prior = [SpreadHypothesis(0.0, 0.0, 1.0)], broad_effect_prior(0.005)
    bounded = context.compare(*sides, unscattered, prior).log_e_change
    context.__dict__["readings"] = replace(r, tails=None)
    assert context.compare(*sides, unscattered, prior).log_e_change > 3 * bounded
    assert bounded == two_sample.log_e_larger(r.location, r.commit == 2, np.zeros(len(r.commit), dtype=int))


def test_boots_of_a_clock_that_should_be_exact_have_no_tails() -> None:
    context, _ = context_of(linear(4), in_tails(1.0), wanted=goal(clock="instructions"))
    assert context.measured.tails is None
    assert (context.measured.boot_ratio == 1).all()
