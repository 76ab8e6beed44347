"""Tests and intervals of shifts: known values, agreement of exact and approximate ways, and large sets."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bisector.model.dag import Floats
from bisector.stats import two_sample
from bisector.stats.comparison import compare
from bisector.stats.two_sample import log_e_larger
from tests.support.samples import series


def normal(count: int, seed: int, level: float = 0.0) -> Floats:
    return level + np.random.default_rng(seed).standard_normal(count)


def counted(a: list[float], b: list[float]) -> float:
    """Return the p-value of the rank sum by going through all splits."""
    pooled = a + b
    ranks = [sum(x < v for x in pooled) + (sum(x == v for x in pooled) + 1) / 2 for v in pooled]
    centre = len(a) * (len(pooled) + 1) / 2
    seen = abs(sum(ranks[: len(a)]) - centre)
    splits = [abs(sum(s) - centre) >= seen - 1e-9 for s in itertools.combinations(ranks, len(a))]
    return sum(splits) / len(splits)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5), st.lists(st.integers(0, 9), min_size=1, max_size=5)
)
def test_the_p_value_counts_all_splits_with_and_without_ties(a: list[int], b: list[int]) -> None:
    one, other = [float(x) for x in a], [float(x) for x in b]
    found = two_sample.rank_sum_p(np.array(one), np.array(other), np.random.default_rng(0))
    assert found == pytest.approx(counted(one, other))


@pytest.mark.parametrize(("n", "m", "ties"), [(30, 40, True), (30, 40, False), (190, 200, False)])
def test_drawn_and_exact_p_agree_with_the_normal_approximation(n: int, m: int, ties: bool) -> None:
    a, b = normal(n, 3), normal(m, 4, 1.5 / math.sqrt(n))
    if ties:
        a, b = np.round(a, 1), np.round(b, 1)
    expected = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False).pvalue
    found = two_sample.rank_sum_p(a, b, np.random.default_rng(0))
    assert found == pytest.approx(expected, abs=0.02)


def test_many_groups_with_ties() -> None:
    # Computed by the normal approximation that stood here before SciPy's.
    a, b = np.repeat([1.0, 2.0], 500), np.repeat([1.0, 2.0], [450, 550])
    assert two_sample.rank_sum_p(a, b, np.random.default_rng(0)) == pytest.approx(
        0.02520094243126816, rel=1e-9
    )
    same = np.full(1000, 5.0)
    assert two_sample.rank_sum_p(same, same, np.random.default_rng(0)) == 1.0


def test_numbers_are_those_of_the_code_before_scipy() -> None:
    a, b = normal(6, 1, 10), np.round(normal(9, 2, 11), 0)
    random = np.random.default_rng(0)
    assert two_sample.rank_sum_p(np.round(a), b, random) == pytest.approx(0.08471528471528472, rel=1e-12)
    drawn = np.round(normal(40, 3)), np.round(normal(50, 4, 0.5))
    assert two_sample.rank_sum_p(*drawn, np.random.default_rng(0)) == pytest.approx(
        0.0994751312171957, rel=1e-12
    )
    assert two_sample.welch(a, b, 0.05) == pytest.approx(
        (-0.24573956569532962, 1.9525575815235165, 0.11729483726457013), rel=1e-12
    )
    found = two_sample.bootstrap_ratio(a, b, 0.05, np.random.default_rng(0))
    assert found == pytest.approx((-0.004230407417295412, 0.18761206982323486), rel=1e-12)


def test_welch_of_sides_without_spread() -> None:
    five = np.array([5.0, 5.0])
    assert two_sample.welch(five, five, 0.05) == (0.0, 0.0, 1.0)
    assert two_sample.welch(five, five + 0.1, 0.05) == pytest.approx((0.1, 0.1, 0.0))
    low, high, p = two_sample.welch(five, np.array([5.1, 5.3]), 0.05)
    assert low < 0.2 < high
    assert 0 < p < 1


@given(st.floats(-10, 10), st.floats(0.01, 10), st.sampled_from([1.0, 3.0, 1e4, math.inf]))
def test_the_t_interval_excludes_zero_where_p_is_small(shift: float, error: float, freedom: float) -> None:
    low, high, p = two_sample.t_interval(shift, error, freedom, 0.05)
    assert (low > 0 or high < 0) == (p < 0.05)


@pytest.mark.filterwarnings("error")
def test_resamples_with_a_base_of_zero_are_left_out() -> None:
    low, high = two_sample.bootstrap_ratio(
        np.array([0.0, 1.0]), np.array([1.0, 2.0]), 0.05, np.random.default_rng(0)
    )
    assert 0 <= low <= high <= 3


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.1])
def test_fewest_and_exact_possible(alpha: float) -> None:
    n = two_sample.fewest(alpha)
    assert two_sample.exact_possible(n, n, alpha)
    assert not two_sample.exact_possible(n - 1, n - 1, alpha)
    assert n == {0.05: 4, 0.01: 5, 0.1: 3}[alpha]


def test_the_interval_of_four_and_four_is_the_range_of_differences() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([11.0, 12.0, 13.0, 14.0])
    assert two_sample.exact_interval(a, b, 0.05) == (7.0, 13.0)


def test_the_interval_excludes_zero_where_p_is_just_alpha() -> None:
    """Four and four with one pair out of order: 4 of 70 splits are as extreme."""
    a, b = np.array([1.0, 2.0, 3.0, 5.0]), np.array([4.0, 6.0, 7.0, 8.0])
    assert two_sample.rank_sum_p(a, b, np.random.default_rng(0)) == 4 / 70
    assert two_sample.exact_interval(a, b, 4 / 70)[0] == 1.0
    assert two_sample.exact_interval(a, b, 3 / 70)[0] == -1.0


@pytest.mark.parametrize("count", [15, 30])
def test_counted_and_normal_ends_of_the_interval_agree(count: int) -> None:
    inside = 0
    for seed in range(200):
        low, high = two_sample.exact_interval(normal(count, 2 * seed), normal(count, 2 * seed + 1, 0.5), 0.05)
        inside += low <= 0.5 <= high
    assert inside >= 181  # 95% nominal: 180 or fewer of 200 come once in 400 times


def test_thinning_changes_neither_estimate_nor_interval() -> None:
    a, b = normal(3000, 7), normal(3000, 8, 0.1)
    differences = np.sort((b[:, None] - a).ravel())
    assert two_sample.hodges_lehmann(a, b) == pytest.approx(float(np.median(differences)), abs=1e-3)
    k = int(9e6 / 2 - 1.959964 * math.sqrt(9e6 * 6001 / 12))
    expected = (differences[k - 1], differences[len(differences) - k])
    assert two_sample.exact_interval(a, b, 0.05) == pytest.approx(expected, abs=1e-3)


def test_a_million_runs_a_side_are_compared_in_seconds() -> None:
    a, b = (series([(level + normal(10**6, seed)).tolist()]) for seed, level in ((9, 100), (10, 100.1)))
    start = time.process_time()
    result = compare("m", a, b)
    assert time.process_time() - start < 10  # 2 s where this was written; the target is 5 s
    assert result.verdict == "worse"
    assert result.effect.estimate == pytest.approx(0.001, abs=0.0001)
    assert result.mean.low < 0.001 < result.mean.high


def test_the_bootstrap_and_the_delta_method_agree() -> None:
    a, b = 100 + normal(200, 11), 101 + normal(200, 12)
    drawn = two_sample.bootstrap_ratio(a, b, 0.05, np.random.default_rng(0))
    a, b = np.append(a, a.mean()), np.append(b, b.mean())  # just over the limit
    assert two_sample.bootstrap_ratio(a, b, 0.05, np.random.default_rng(0)) == pytest.approx(drawn, abs=3e-4)


def test_how_many_units_are_needed() -> None:
    assert two_sample.needed(0.02, 0.05, 0.05) == 4  # the fewest that can be tested at all
    assert two_sample.needed(0.10, 0.05, 0.05) == math.ceil(
        2 * ((1.959964 + 1.281552) * 2) ** 2 * math.pi / 3
    )
    assert two_sample.needed(0.5, 0.0, 0.05) == 4


def log_e(values: Sequence[float], labels: Sequence[int], blocks: list[int] | None = None) -> float:
    block = np.array(blocks or [0] * len(values))
    return log_e_larger(np.array(values, dtype=float), np.array(labels, dtype=bool), block)


def separate(boots: int) -> tuple[list[float], list[int]]:
    return [*range(2 * boots)], [0] * boots + [1] * boots


@pytest.mark.parametrize("boots", [2, 3, 4, 5, 6])
def test_groups_that_do_not_overlap_give_nearly_the_number_of_orders_and_never_more(boots: int) -> None:
    e = math.exp(log_e(*separate(boots)))
    assert 0.4 * math.comb(2 * boots, boots) < e <= math.comb(2 * boots, boots)


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.booleans())
def test_the_mean_over_the_places_of_a_new_value_is_what_was_before(labels: list[bool], new: bool) -> None:
    """So it is a martingale where all places are equally likely, and looking at any time is allowed."""
    values = [float(k) for k in range(len(labels))]
    marks = [int(x) for x in labels]
    after = [log_e([*values, place - 0.5], [*marks, int(new)]) for place in range(len(values) + 1)]
    assert np.mean(np.exp(after)) == pytest.approx(math.exp(log_e(values, marks)))


def test_smaller_values_of_the_later_group_are_evidence_against_it() -> None:
    values, labels = separate(4)
    assert log_e(values, labels) > math.log(33)
    assert log_e([-v for v in values], labels) < 0


def test_ties_give_no_evidence() -> None:
    assert log_e([1.0] * 12, [0, 1] * 6) <= 0
    split = [1, 1, 1, 2, 2, 2, 2, 2]  # one value of the later group equals those of the earlier one
    assert log_e(split, [0, 0, 0, 0, 1, 1, 1, 1]) < log_e(
        [1, 1, 1, 1.5, 2, 2, 2, 2], [0, 0, 0, 0, 1, 1, 1, 1]
    )


def test_values_compare_within_a_block_only() -> None:
    values, labels = separate(2)
    apart = log_e([*values, *(v + 100 for v in values)], labels * 2, [0] * 4 + [1] * 4)
    assert math.exp(apart) <= math.comb(4, 2) ** 2
    assert apart > log_e(values, labels)
    shifted = [0.0, 1.0, 100.0, 101.0]  # a level of a testbed is no evidence
    assert log_e(shifted, [0, 0, 1, 1], [0, 0, 1, 1]) == pytest.approx(0.0)


def test_two_modes_seldom_look_like_a_change() -> None:
    """Boots of one commit in two modes, looked at after every boot: at most one in twenty may pass."""
    random = np.random.default_rng(4)
    passed = 0
    for _ in range(400):
        values = np.where(random.random(16) < 0.4, 4.0, 0.0) + 0.1 * random.standard_normal(16)
        labels = [0, 1, 1, 0] * 4
        looks = (log_e(values[:k].tolist(), labels[:k]) for k in range(6, 17))
        passed += max(looks) >= math.log(20)
    assert passed <= 30  # 20 expected at most; 30 is two standard deviations above


@pytest.mark.parametrize("shift", [0.4, 0.5])
def test_evidence_of_a_small_shift_grows_with_the_number_of_values(shift: float) -> None:
    """A mixture without small ratios would lose evidence with every value, and a search would never end."""
    random = np.random.default_rng(3)

    def median(count: int) -> float:
        labels = np.array([0, 1] * count)
        values = random.normal(size=(9, 2 * count)) + shift * labels
        return float(np.median([log_e(row, labels.tolist()) for row in values.tolist()]))

    assert median(400) > median(100) > median(25) - 1
    assert median(400) > math.log(1000)


@pytest.mark.parametrize(("boots", "suspect"), [(4, 1), (5, 2)])
def test_a_first_and_a_second_suspect_need_four_and_five_boots_apart(boots: int, suspect: int) -> None:
    share = 0.05 * 6 / (math.pi * suspect) ** 2
    assert log_e(*separate(boots)) > math.log(1 / share)
    assert log_e(*separate(boots - 1)) < math.log(1 / share)
