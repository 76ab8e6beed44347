"""Tests and intervals of shifts: known values, agreement of exact and approximate ways, and large sets."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy import stats

from bisector.stats import two_sample
from bisector.stats.comparison import compare


def normal(count: int, seed: int, level: float = 0.0) -> two_sample.Floats:
    return level + np.random.default_rng(seed).standard_normal(count)


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 7), (8, 8), (3, 20)])
def test_the_exact_p_is_the_rank_sum_test(n: int, m: int) -> None:
    a, b = normal(n, 1), normal(m, 2, 1.0)
    expected = stats.mannwhitneyu(a, b, method="exact").pvalue
    assert two_sample.permutation_p(a, b, np.random.default_rng(0)) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "m"), [(30, 40), (300, 400), (5000, 6000)])
def test_drawn_and_approximate_p_agree_with_it(n: int, m: int) -> None:
    a, b = normal(n, 3), normal(m, 4, 1.5 / math.sqrt(n))
    expected = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False).pvalue
    found = two_sample.permutation_p(a, b, np.random.default_rng(0))
    assert found == pytest.approx(expected, abs=0.02)


def test_ties_in_large_sets() -> None:
    a, b = np.repeat([1.0, 2.0], 500), np.repeat([1.0, 2.0], [450, 550])
    expected = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False).pvalue
    assert two_sample.permutation_p(a, b, np.random.default_rng(0)) == pytest.approx(expected, rel=0.01)
    same = np.full(1000, 5.0)
    assert two_sample.permutation_p(same, same, np.random.default_rng(0)) == 1.0


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.1])
def test_fewest_and_exact_possible(alpha: float) -> None:
    n = two_sample.fewest(alpha)
    assert two_sample.exact_possible(n, n, alpha)
    assert not two_sample.exact_possible(n - 1, n - 1, alpha)
    assert n == {0.05: 4, 0.01: 5, 0.1: 3}[alpha]


def test_the_interval_of_four_and_four_is_the_range_of_differences() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([11.0, 12.0, 13.0, 14.0])
    assert two_sample.exact_interval(a, b, 0.05) == (7.0, 13.0)


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


def test_a_hundred_thousand_runs_are_compared_in_seconds() -> None:
    a, b = [list(100 + normal(100_000, 9))], [list(100.1 + normal(100_000, 10))]
    start = time.process_time()
    result = compare("m", a, b)
    assert time.process_time() - start < 20
    assert result.verdict == "worse"
    assert result.effect.estimate == pytest.approx(0.001, abs=0.0002)
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
