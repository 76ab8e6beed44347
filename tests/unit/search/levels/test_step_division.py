"""Losses of many steps, and changes that cancel: which step is divided, measured again, or certified."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Ending, Measure
from bisector.model.goal import Goal
from bisector.search.candidates import Suspect
from bisector.search.context import SearchContext
from bisector.search.levels.level_profile import likeliest_steps
from bisector.search.levels.step_division import levels_wander, next_trial, scan_largest_class
from bisector.search.planner import Planner
from bisector.search.posterior import Posterior
from bisector.simulation.judge import judge
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.support.searching import Seen, context_of, goal, linear


def known(
    levels: dict[int, float], *, commits: int = 64, wanted: Goal | None = None, boots: int = 3
) -> tuple[SearchContext, Posterior]:
    """Return the context and the posterior for levels in percent above good's, each of a few quiet boots."""
    visits = [Seen(c, (100 + y, 100.1 + y, 99.9 + y)) for c, y in levels.items() for _ in range(boots)]
    context, cache = context_of(linear(commits), visits, wanted=wanted)
    return context, of_equal_binaries(cache.posterior(context, (), math.log1p(levels[commits] / 100)))


def of_equal_binaries(posterior: Posterior) -> Posterior:
    """Return the posterior of a metric that sees no code layout: no step is a difference of binaries."""
    noises = tuple(replace(noise, binary=0.0) for noise in posterior.fits.noises)
    return replace(posterior, fits=replace(posterior.fits, noises=noises))


def test_the_step_that_most_probably_reaches_the_threshold_is_divided() -> None:
    context, posterior = known({0: 0, 16: 2, 32: 10, 48: 12, 64: 14})
    trial = next_trial(context, posterior, "search")
    assert isinstance(trial, Measure)
    assert trial.commit == 24
    assert "divides a step of 16 commits" in trial.reason
    assert trial.boot is None
    assert trial.purpose == "search"


def test_untestable_commits_do_not_divide_a_step() -> None:
    context, posterior = known({0: 0, 16: 2, 32: 10, 48: 12, 64: 14})
    state = replace(context.state, untestable=dict.fromkeys(range(17, 29), "does not build"))
    trial = next_trial(SearchContext(state, context.dag, None), posterior, "search")
    assert isinstance(trial, Measure)
    assert trial.commit == 29


def test_a_step_of_one_commit_is_a_suspect() -> None:
    context, posterior = known({0: 0, 20: 1, 21: 21, 64: 22})
    trial = next_trial(context, posterior, "search")
    assert isinstance(trial, Suspect)
    assert (trial.commits, trial.after) == ((21,), 21)
    assert trial.probability > 0.8


def test_a_merge_of_a_branch_that_lacks_good_is_no_suspect_for_what_the_branch_did() -> None:
    """Commit 1 forked before good (0), 2 and 3 are its branch, 4 is the main line, 5 merges both."""
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(6)),
        ((), (), (1,), (0,), (3, 2), (4,)),
        (False, False, True, True, True, True),
        0,
        5,
    )
    visits = [
        Seen(c, (y, y + 0.1, y - 0.1))
        for c, y in ((0, 100), (3, 100.5), (4, 120), (5, 121))
        for _ in range(3)
    ]
    context, cache = context_of(graph, visits)
    posterior = of_equal_binaries(cache.posterior(context, (), math.log(1.2)))
    likeliest, _ = likeliest_steps(context, posterior, ())[0]
    assert (likeliest.before, likeliest.after) == (3, 4)
    assert next_trial(context, posterior, "search") is None


def test_a_step_that_nothing_divides_or_proves_does_not_block_another() -> None:
    """The graph above, where 4 merges a branch that lacks good, with commits 6 to 13 after it."""
    parents = ((), (), (1,), (0,), (3, 2), *((c,) for c in range(4, 13)))
    candidate = (False, False, *[True] * 12)
    graph = CommitGraph(tuple(f"{i:040x}" for i in range(14)), parents, candidate, 0, 13)
    levels = ((0, 100), (3, 100.5), (4, 120), (5, 120.5), (13, 129))
    visits = [Seen(c, (y, y + 0.1, y - 0.1)) for c, y in levels for _ in range(3)]
    context, cache = context_of(graph, visits)
    posterior = of_equal_binaries(cache.posterior(context, (), math.log(1.29)))
    blocked, *others = likeliest_steps(context, posterior, ())
    assert (blocked[0].before, blocked[0].after) == (3, 4)
    assert [(s.before, s.after) for s, _ in others] == [(5, 13)]
    trial = next_trial(context, posterior, "search")
    assert isinstance(trial, Measure)
    assert trial.commit == 9


def test_what_another_testbed_measures_is_not_asked_for_again() -> None:
    context, posterior = known({0: 0, 16: 2, 32: 10, 48: 12, 64: 14})
    under_way = replace(context.state, pending=(Measure(24, 2, "search", ""),))
    trial = next_trial(SearchContext(under_way, context.dag), posterior, "search")
    assert isinstance(trial, Measure)
    assert trial.commit in (23, 25)


def test_a_step_that_is_little_known_is_measured_again_at_its_less_known_end() -> None:
    noisy = [Seen(c, (98.0 + y, 100.0 + y, 102.0 + y)) for c, y in ((0, 0.0), (64, 14.0)) for _ in range(6)]
    noisy += [Seen(20, (101.0, 103.0, 105.0)), Seen(30, (109.0,))]
    context, cache = context_of(linear(64), noisy)
    trial = next_trial(context, of_equal_binaries(cache.posterior(context, (), math.log(1.14))), "search")
    assert isinstance(trial, Measure)
    assert trial.commit == 30
    assert "measures an end of a step" in trial.reason


def wandering(effect: float, background: float, highest: float) -> tuple[SearchContext, Posterior]:
    """Return a posterior with this effect in thresholds, weight of a background, and best class."""
    context, posterior = known({0: 0, 16: 6, 32: 10, 48: 15, 64: 20})
    design = replace(posterior.design, effect=effect * context.threshold)
    none, some = (replace(posterior.fits.noises[0], background=b) for b in (0.0, 0.1))
    fits = replace(posterior.fits, noises=(none, some))
    marginal = np.full_like(posterior.marginal, 0.05)
    marginal[0] = highest
    weights = np.array([1 - background, background])
    return context, replace(posterior, design=design, fits=fits, weights=weights, marginal=marginal)


@pytest.mark.parametrize(
    ("effect", "background", "highest", "wanders"),
    [(4, 0.9, 0.2, True), (2.9, 0.9, 0.2, False), (4, 0.79, 0.2, False), (4, 0.9, 0.41, False)],
)
def test_a_large_loss_without_a_suspect_over_a_background_is_divided_at_once(
    effect: float, background: float, highest: float, wanders: bool
) -> None:
    assert levels_wander(*wandering(effect, background, highest)) is wanders


def simulated(*culprits: Culprit, scan: bool = False, threshold: float = 2.0) -> tuple[str, Ending, set[int]]:
    lab = LabModel(run_noise=0.5, build_seconds=20, boot_seconds=5, run_seconds=1)
    scenario = Scenario(commits=256, culprits=culprits, threshold=threshold, lab=lab, scan=scan)
    bisection = simulate_bisection(scenario, 1, Planner())
    found = {c for f in bisection.conclusion.large for c in f.commits}
    return judge(scenario, bisection).verdict, bisection.conclusion.ending, found


def test_thirty_changes_of_a_quarter_of_the_threshold_are_a_spread_loss() -> None:
    verdict, ending, _ = simulated(*(Culprit(0.5) for _ in range(30)))
    assert (verdict, ending) == ("spread", Ending.SPREAD)


def test_a_loss_its_fix_and_the_loss_again_are_three_with_scan() -> None:
    changes = (Culprit(2.0, 40), Culprit(-2.0, 120), Culprit(2.0, 200))
    assert simulated(*changes, scan=True, threshold=1.0)[2] == {40, 120, 200}
    assert simulated(*changes, threshold=1.0)[2] == {200}  # who does not ask does not pay for it


def test_a_scan_measures_the_middle_of_the_largest_stretch_until_a_pair_is_unlikely_to_hide() -> None:
    wanted = replace(goal(), scan=True)
    context, posterior = known({0: 0, 20: 0.1, 64: 9}, wanted=wanted)
    trial = scan_largest_class(posterior, context, "attribute")
    assert trial is not None
    assert trial.commit == pytest.approx(42, abs=1)
    assert trial.purpose == "attribute"
    assert "two may cancel" in trial.reason
    nothing = replace(posterior.design, prior=np.zeros_like(posterior.design.prior))
    assert scan_largest_class(replace(posterior, design=nothing), context, "attribute") is None
    plain, without = known({0: 0, 20: 0.1, 64: 9})
    assert scan_largest_class(without, plain, "attribute") is None
    broken = {c: "does not build" for c in range(1, 64) if c != 20}
    whole = SearchContext(replace(context.state, untestable=broken), context.dag)
    assert scan_largest_class(posterior, whole, "attribute") is None  # nothing divides what is left
    many = known({c: 0.1 * c for c in range(65)}, wanted=wanted, boots=1)
    assert scan_largest_class(many[1], many[0], "attribute") is None
