"""Expected information of a trial, and the best number of runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bisector.model.dag import Floats
from bisector.search import acquisition
from bisector.search.acquisition import RUN_COUNTS, TrialOption, TrialRater, mutual_information
from bisector.search.predictive import PredictedLevels
from tests.support.searching import Seen, context_of, linear, seen_on_unequal_testbeds

GOOD, BAD = (100.0, 100.5, 99.5), (105.0, 105.5, 104.5)


def predicted(
    weight: list[float], mean: list[float], variance: float = 0.0, culprit_id: list[int] | None = None
) -> PredictedLevels:
    ids: NDArray[np.int64] | None = None if culprit_id is None else np.array([culprit_id])
    return PredictedLevels(np.array([weight]), np.array([mean]), np.full((1, len(mean)), variance), ids)


def bits(p: PredictedLevels, noise: float = 1.0, scale: float = 1.0) -> float:
    return float(mutual_information(p, np.array([noise]), np.array([scale]))[0])


def test_two_hypotheses_far_apart_are_told_by_one_reading() -> None:
    assert bits(predicted([0.5, 0.5], [0.0, 100.0])) == pytest.approx(1.0, abs=1e-4)
    assert bits(predicted([0.9, 0.1], [0.0, 100.0])) == pytest.approx(0.469, abs=1e-3)  # the entropy of 0.1
    assert bits(predicted([0.25] * 4, [0.0, 100.0, 200.0, 300.0])) == pytest.approx(2.0, abs=1e-4)


def test_equal_predictions_tell_nothing() -> None:
    assert bits(predicted([0.5, 0.5], [3.0, 3.0], 2.0)) == pytest.approx(0.0, abs=1e-6)


def test_levels_that_differ_in_their_uncertainty_alone_are_told_by_it() -> None:
    """Normal distributions of standard deviations 1 and 2 overlap by sqrt(2 * 1 * 2 / (1 + 4))."""
    p = PredictedLevels(np.array([[0.5, 0.5]]), np.zeros((1, 2)), np.array([[0.0, 3.0]]), None)
    assert bits(p) == pytest.approx(-math.log2((1 + math.sqrt(0.8)) / 2), abs=1e-6)


def test_small_effects_bring_their_exact_information() -> None:
    """For equal odds and a distance of d noise deviations: d^2 / 8 nats."""
    d = 0.1
    assert bits(predicted([0.5, 0.5], [0.0, d])) == pytest.approx(d**2 / 8 / math.log(2), rel=0.02)


def test_what_tells_the_noise_alone_does_not_count() -> None:
    noise_only = predicted([0.5, 0.5], [0.0, 100.0], culprit_id=[7, 7])
    assert bits(noise_only) == pytest.approx(0.0, abs=1e-5)
    both = predicted([0.25] * 4, [0.0, 100.0, 200.0, 300.0], culprit_id=[1, 1, 2, 2])
    assert bits(both) == pytest.approx(1.0, abs=1e-4)


def test_of_a_trial_that_tells_noise_and_culprits_the_culprits_count() -> None:
    """Two culprits that read alike under one noise hypothesis, and apart under the other: half of a bit."""
    p = predicted([0.25] * 4, [0.0, 0.0, 100.0, 200.0], culprit_id=[1, 2, 1, 2])
    assert bits(p) == pytest.approx(0.5, abs=1e-4)
    uneven = predicted([0.4, 0.1, 0.1, 0.4], [0.0, 0.0, 100.0, 100.0], culprit_id=[1, 2, 1, 2])
    entropy = -0.8 * math.log2(0.8) - 0.2 * math.log2(0.2)
    assert bits(uneven) == pytest.approx(1.0 - entropy, abs=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=6),
    st.lists(st.floats(-5, 5), min_size=6, max_size=6),
    st.floats(0.01, 5),
)
def test_information_is_at_most_the_entropy_and_falls_with_the_noise(
    weights: list[float], means: list[float], noise: float
) -> None:
    w = np.array(weights) / sum(weights)
    p = predicted(w.tolist(), means[: len(w)], 0.1)
    entropy = float(-(w * np.log2(w)).sum())
    assert -1e-6 <= bits(p, noise) <= entropy + 1e-4
    assert bits(p, 4 * noise) <= bits(p, noise) + 1e-4
    assert bits(p, noise, scale=0.25) <= bits(p, noise) + 1e-4


def rater(run_cost: float = 1.0) -> TrialRater:
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 3]
    context, cache = context_of(linear(16), visits)
    return TrialRater(
        cache.posterior(context, (), math.log(1.05)), context.dag, run_cost, (), context.testbed
    )


def option(commit: int, seconds: float = 25.0, live: float | None = None) -> TrialOption:
    return TrialOption(commit, 0, None if live is None else "b", seconds, False, live)


def test_the_trial_with_the_most_bits_per_second_comes_first() -> None:
    rated = rater().rate_trials([option(2), option(8), option(15), option(7, 250.0)], 64)
    assert rated[0].option.commit == 8
    assert rated[0].bad_probability == pytest.approx(0.5, abs=0.05)
    rates = [r.bits / r.cost for r in rated]
    assert rates == sorted(rates, reverse=True)
    assert all(r.runs in RUN_COUNTS for r in rated)


@pytest.mark.parametrize("last", [1e-6, -1e-6, -1e-3, 1e-3])
def test_rounding_does_not_choose_between_equal_trials(last: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """5 and 11 of 16 split alike. Which one comes first was up to the instructions that a processor has."""

    def rounded(p: PredictedLevels, noise: Floats, scale: Floats) -> Floats:
        found = mutual_information(p, noise, scale)
        return np.where(np.arange(len(found)) == len(found) - 1, found * (1 + last), found)

    monkeypatch.setattr(acquisition, "mutual_information", rounded)
    ends = [option(2), option(15)]
    rated = rater().rate_trials([*ends, option(5), option(11)], 1)
    assert rated[0].option.commit == (11 if last == 1e-3 else 5)
    assert rated[1].option.commit == (5 if last == 1e-3 else 11)
    assert rater().rate_trials([*ends, option(11), option(5)], 1)[0].option.commit == (
        5 if last == 1e-3 else 11
    )


def test_trials_that_bring_nothing_stay_in_their_order() -> None:
    same = [option(0, live=1e12), option(0), option(16)]
    nothing = rater().rate_trials(same, 1, lambda commit: 0.0)
    assert [r.option for r in nothing] == same


def test_no_more_runs_than_allowed_and_few_in_a_live_boot() -> None:
    costly = rater(run_cost=1e-6)
    assert costly.rate_trials([option(8)], 4)[0].runs == 4
    assert costly.rate_trials([option(8)], 64)[0].runs > 8
    assert costly.rate_trials([option(8, live=1e4)], 64)[0].runs == 8


def test_a_discount_moves_a_trial_back() -> None:
    plain = rater().rate_trials([option(8), option(7)], 8)
    assert plain[0].option.commit == 8
    less = rater().rate_trials([option(8), option(7)], 8, lambda commit: 0.1 if commit == 8 else 1.0)
    assert less[0].option.commit == 7


def test_runs_are_worth_less_in_a_boot_whose_offset_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rater()
    found.boot_sd = 0.05
    new, live = found.rate_trials([option(8, 0.0), option(8, 0.0, live=1e6)], 1)
    assert {new.option.live_precision, live.option.live_precision} == {None, 1e6}
    by_live = {r.option.live_precision: r.bits for r in (new, live)}
    assert by_live[1e6] < 0.1 * by_live[None]
    assert by_live[None] == pytest.approx(_bits_of_one_run(found, 0.05**2, 1.0), rel=1e-6)
    (partly,) = found.rate_trials([option(8, 0.0, live=1000.0)], 1)
    unknown = 0.001 / (0.05**2 + 0.001)  # the share of the boot's variance that its runs so far leave open
    assert partly.bits == pytest.approx(_bits_of_one_run(found, 0.05**2 * unknown, unknown**2), rel=1e-6)


def _bits_of_one_run(rater: TrialRater, boot_variance: float, scale: float) -> float:
    run = rater.posterior.design.readings.run_sd**2
    levels = rater.predictor.levels([(8, 0)]).rows(np.array([0]))
    return float(mutual_information(levels, np.array([boot_variance + run]), np.array([scale]))[0])


def test_a_run_on_a_quiet_testbed_tells_more_than_one_on_a_loud_one() -> None:
    context, cache = context_of(linear(4), seen_on_unequal_testbeds())
    posterior = cache.posterior(context, (), 0.01)
    loud, quiet = (TrialRater(posterior, context.dag, 1.0, (), testbed) for testbed in (0, 1))
    r = context.measured
    assert (loud.run_sd, quiet.run_sd) == (r.run_sd_on(0), r.run_sd_on(1))
    assert loud.boot_sd / quiet.boot_sd == pytest.approx(r.boot_ratio_on(0) / r.boot_ratio_on(1))
    assert loud.run_sd > 3 * quiet.run_sd


def test_exact_levels_bring_most_bits_and_none_where_all_explanations_agree() -> None:
    """Between 0 and 16 nothing was measured. Of 8 one run brings little, of the ends nothing does."""
    context, cache = context_of(linear(16), [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 3])
    rater = TrialRater(cache.posterior(context, (), math.log(1.05)), context.dag, 1.0)
    middle, below, end = (TrialOption(c, 0, None, 0.0, True) for c in (8, 2, 16))
    assert rater.most_bits([middle]) == pytest.approx(1.0, abs=0.1)
    assert rater.most_bits([below]) == pytest.approx(0.54, abs=0.1)  # the entropy of 1/8
    assert rater.most_bits([end]) < 0.05
    assert rater.most_bits([end, middle, below]) == rater.most_bits([middle])
