"""Copies: boots with the same random numbers, which count once where runs differ by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bisector.model.decisions import Measure
from bisector.model.goal import Goal
from bisector.model.state import State, fold
from bisector.search.cache import PlannerCache
from bisector.search.planner import Planner
from bisector.search.seeds.copied_boots import MAX_EXACT_RUN_SD, boots_repeat, without_copies
from bisector.stats.variance_components import VarianceComponents
from tests.support.searching import Seen, context_of, goal, linear, records_of

EXACT = goal(clock="instructions")
GRAPH = linear(8)
LOOSE, FIRM = (100.0, 110.0), (100.0, 100.02)
"""Runs of a boot that differ by two thresholds, and by a 250th."""
OTHER = (104.0, 96.0)


def state_of(*visits: Seen, wanted: Goal = EXACT) -> State:
    return fold(GRAPH, wanted, records_of(visits))


def wants(*visits: Seen, wanted: Goal = EXACT, noise: VarianceComponents | None = None) -> bool:
    return without_copies(state_of(*visits, wanted=wanted), noise)[1]


def kept(*visits: Seen, binaries: dict[tuple[int, int], str] | None = None) -> list[str]:
    """Return the boots that count where runs scatter: of these visits, after two that show it."""
    state = state_of(Seen(0, LOOSE), Seen(8, OTHER), *visits)
    state = replace(state, binaries={**state.binaries, **(binaries or {})})
    samples, fresh = without_copies(state)
    assert fresh
    assert (samples.boots, samples.records, samples.costs) == (state.boots, state.records, state.costs)
    return [v.boot for v in samples.visits[2:]]


def test_boots_repeat_where_each_repetition_reads_the_same() -> None:
    """Cold repetitions differ within a boot, and boots have different numbers of runs: neither denies it."""

    def repeat(*boots: Sequence[float]) -> bool:
        context, _ = context_of(linear(4), [Seen(2, values) for values in boots])
        return boots_repeat(context.state, context.measured.scale)

    assert repeat((124.0, 109.0, 100.0), (124.0,), (124.3, 109.0))
    assert not repeat((124.0, 109.0, 100.0), (124.0, 110.0))
    assert not repeat((124.0, 109.0), (124.0, 109.0), (125.0,))
    assert repeat((math.nan, 109.0), (124.0, 109.0))


# --- when boots need other random numbers ---


@pytest.mark.parametrize(
    "wanted", [goal(), replace(EXACT, modelled=True), replace(EXACT, fresh_seeds=True)], ids=str
)
def test_only_boots_of_an_exact_clock_have_the_same_random_numbers(wanted: Goal) -> None:
    visits = [Seen(0, LOOSE), Seen(8, OTHER), Seen(0, LOOSE)]
    assert wants(*visits)
    state = state_of(*visits, wanted=wanted)
    assert without_copies(state) == (state, False)


def test_before_a_sample_nothing_is_wanted() -> None:
    assert not wants()
    assert not wants(Seen(0, ()), Seen(8, (math.nan,)))


def test_what_all_boots_share_by_repetition_is_no_scatter() -> None:
    cold = (124.0, 109.0, 100.0)
    assert not wants(Seen(0, cold))
    assert not wants(Seen(0, cold), Seen(8, tuple(1.5 * y for y in cold)), Seen(4, cold[:2]))
    assert wants(Seen(0, cold), Seen(8, (150.0, 150.0, 150.0)))


def test_runs_that_repeat_leave_every_boot_a_sample() -> None:
    state = state_of(Seen(0, FIRM), Seen(8, (120.0, 120.0)), Seen(0, FIRM), Seen(0, FIRM))
    assert without_copies(state) == (state, False)


def test_boots_that_differ_while_runs_do_not_are_samples_though_two_of_them_agree() -> None:
    """A device may have modes: no other random numbers would change them."""
    modes = [Seen(0, (level, level)) for level in (100.0, 103.0, 100.0, 103.0)]
    state = state_of(*modes, Seen(8, FIRM))
    assert without_copies(state) == (state, False)


def test_few_runs_do_not_show_that_a_clock_is_exact() -> None:
    """By the estimate alone a scatter of two thresholds went unnoticed after two boots in one of four."""

    def scattering(share: float, boots: int, seed: int) -> bool:
        random = np.random.default_rng(seed)
        sd = share * math.log1p(EXACT.metric.threshold.value)
        values = 100 * np.exp(sd * random.standard_normal((boots, 2)))
        return wants(*(Seen(c, tuple(y)) for c, y in enumerate(values.tolist())))

    for share, boots, least in ((0.5, 2, 88), (2.0, 2, 94), (0.5, 8, 88)):
        assert sum(scattering(share, boots, seed) for seed in range(100)) >= least
    assert sum(scattering(0.2, 8, seed) for seed in range(100)) <= 15


def test_what_past_measurements_or_single_runs_show_is_scatter_too() -> None:
    known = VarianceComponents(1.1 * MAX_EXACT_RUN_SD * math.log1p(0.05), 1e6, 0.0, 10.0)
    assert wants(Seen(0, FIRM), Seen(8, FIRM), noise=known)
    assert not wants(Seen(0, FIRM), Seen(8, FIRM), noise=replace(known, run_sd=known.run_sd / 2))
    assert wants(*(Seen(c, (y,)) for c in (0, 8) for y in (100.0, 105.0, 95.0)))


def test_other_random_numbers_are_wanted_from_the_first_such_boot_on() -> None:
    assert not wants(Seen(0, FIRM), Seen(8, FIRM), Seen(0, FIRM))
    assert wants(Seen(0, FIRM), Seen(8, FIRM), Seen(0, FIRM, fresh_seed=True))


# --- which boots count ---


@pytest.mark.parametrize(
    ("visits", "count"),
    [
        ([Seen(4, (100.0, 110.0)), Seen(4, (100.0, 110.0)), Seen(4, (100.4, 109.6))], ["b2"]),
        ([Seen(4, (100.0, 110.0)), Seen(4, (100.0, 111.0))], ["b2", "b3"]),
        ([Seen(4, (100.0,)), Seen(4, (100.0, 110.0), "certify")], ["b2"]),
        ([Seen(4, (100.0, 110.0)), Seen(4, (100.0,)), Seen(4, (111.0,))], ["b2", "b4"]),
        ([Seen(4, (100.0, 110.0)), Seen(4, (100.0, 110.0), fresh_seed=True)], ["b2", "b3"]),
        ([Seen(4, (100.0, 110.0), fresh_seed=True), Seen(4, (100.0, 110.0))], ["b2", "b3"]),
        ([Seen(4, (100.0, 110.0)), Seen(4, (100.0, 110.0), testbed="u")], ["b2"]),
        ([Seen(4, (100.0, 110.0)), Seen(5, (100.0, 110.0))], ["b2", "b3"]),
        ([Seen(4, (100.0, 110.0)), Seen(4, (100.0, 110.0), layout=1)], ["b2", "b3"]),
        ([Seen(4, (100.0, 110.0)), Seen(4, ()), Seen(4, (math.nan,))], ["b2", "b3", "b4"]),
        ([Seen(4, (100.0, math.nan)), Seen(4, (math.nan, 110.0))], ["b2", "b3"]),
    ],
)
def test_of_boots_that_repeat_each_other_the_first_counts(visits: list[Seen], count: list[str]) -> None:
    assert kept(*visits) == count


def test_boots_of_one_kernel_are_copies_whatever_commit_they_are_of() -> None:
    visits = [Seen(4, (100.0, 110.0)), Seen(5, (100.0, 110.0))]
    assert kept(*visits, binaries={(4, 0): "same", (5, 0): "same"}) == ["b2"]


# --- what a search makes of it ---

COPIES = [Seen(c, values) for c, values in ((0, LOOSE), (8, OTHER)) for _ in range(3)]


def test_a_search_sees_no_copies() -> None:
    context, cache = context_of(GRAPH, COPIES, wanted=EXACT)
    assert [len(context.boots(commit, "search")) for commit in (0, 8)] == [1, 1]
    assert len(context.measured.boot) == 2
    assert context.runs_scatter
    assert not context.exact_clock
    assert len(context.state.boots) == len(COPIES)
    part = cache.restrict(context, context.state.visits[:1])
    assert (part.wants_fresh_seeds, part.exact_clock) == (True, False)


def test_boots_that_need_other_random_numbers_can_still_be_exact() -> None:
    """Runs that may scatter, by what little is known: where a boot with others repeats, they do not."""
    uneven = [Seen(0, (100.0, 101.0)), Seen(8, (120.0, 120.0))]
    context, _ = context_of(GRAPH, uneven, wanted=EXACT)
    assert (context.wants_fresh_seeds, context.runs_scatter, context.exact_clock) == (True, False, True)
    again = [*uneven, Seen(0, (100.0, 101.0), fresh_seed=True)]
    context, _ = context_of(GRAPH, again, wanted=EXACT)
    assert len(context.boots(0, "search")) == 2
    assert context.exact_clock
    copy = Seen(0, (100.0, 101.0))
    context, _ = context_of(GRAPH, [*uneven, copy], wanted=EXACT)
    assert len(context.boots(0, "search")) == 2
    differs = [*uneven, copy, Seen(0, (101.0, 100.0), fresh_seed=True)]
    context, _ = context_of(GRAPH, differs, wanted=EXACT)
    assert [v.boot for v in context.boots(0, "search")] == ["b0", "b3"]
    assert not context.exact_clock


def test_only_a_new_boot_gets_other_random_numbers_and_only_where_runs_may_scatter() -> None:
    boot, more = Measure(4, 2, "search", ""), Measure(0, 2, "search", "", boot="b0")
    context, _ = context_of(GRAPH, COPIES, wanted=EXACT)
    assert context.seeded(boot) == replace(boot, fresh_seed=True)
    assert context.seeded(more) == more
    quiet, _ = context_of(GRAPH, [Seen(0, FIRM), Seen(8, FIRM)], wanted=EXACT)
    assert quiet.seeded(boot) == boot


@pytest.mark.parametrize(
    ("commit", "layout", "wanted", "fresh"),
    [(0, 0, EXACT, True), (0, 1, EXACT, False), (1, 0, EXACT, True), (0, 0, goal(), False)],
    ids=["again", "another layout", "the same binary", "a clock that is not exact"],
)
def test_a_binary_that_was_booted_gets_other_random_numbers(
    commit: int, layout: int, wanted: Goal, fresh: bool
) -> None:
    """What belongs to the seed and not to the kernel would repeat in each boot, and be taken for exact."""
    state = fold(GRAPH, wanted, records_of([Seen(0, FIRM), Seen(8, FIRM)]))
    state = replace(state, binaries={(0, 0): "one", (1, 0): "one", (8, 0): "other"})
    context = PlannerCache(GRAPH, None).context(state)
    trial = Measure(commit, 2, "certify", "", layout=layout)
    assert context.seeded(trial).fresh_seed is fresh
    live = replace(trial, boot="b0")
    assert context.seeded(live) == live


@pytest.mark.parametrize(
    ("values", "commit", "fresh"),
    [(OTHER, 8, True), (FIRM, 8, True), ((120.0, 120.02), 4, False)],
    ids=["runs scatter", "bad again", "a new binary"],
)
def test_the_planner_asks_for_other_random_numbers(
    values: tuple[float, ...], commit: int, fresh: bool
) -> None:
    seen = state_of(Seen(0, FIRM, "verify"), Seen(8, values, "verify"))
    trial = Planner().next(seen)
    assert isinstance(trial, Measure)
    assert (trial.commit, trial.boot, trial.fresh_seed) == (commit, None, fresh)
