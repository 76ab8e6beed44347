"""Variance components and what follows from them, against numbers worked out by hand or drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bisector.stats.variance_components import components, correlation, runs_per_boot, smallest_effect

SD = st.floats(0.001, 0.1)


def test_components_of_a_small_balanced_table() -> None:
    run, run_df, boot, boot_df = components(
        [np.array([1.0, 3.0]), np.array([5.0, 7.0]), np.array([3.0, 5.0])]
    )
    # within: 3 * 2 / 3 = 2; between: 2 * (4 + 4 + 0) / 2 = 8; so (8 - 2) / 2 = 3 between boots
    assert run.estimate == pytest.approx(math.sqrt(2))
    assert boot.estimate == pytest.approx(math.sqrt(3))
    assert (run_df, boot_df) == (3, 2)
    assert run.low == pytest.approx(math.sqrt(6 / stats.chi2.ppf(0.975, 3)))
    assert run.high == pytest.approx(math.sqrt(6 / stats.chi2.ppf(0.025, 3)))
    f = stats.f(2, 3)
    assert boot.low == pytest.approx(math.sqrt(max(0, (8 / f.ppf(0.975) - 2) / 2)))
    assert boot.high == pytest.approx(math.sqrt((8 / f.ppf(0.025) - 2) / 2))


def test_smallest_effect_is_shown_with_the_stated_power() -> None:
    random = np.random.default_rng(1)
    boots_a_side, runs, run_sd, boot_sd = 6, 5, 1.0, 0.5
    effect = smallest_effect(run_sd, boot_sd, boots_a_side, runs, 0.05)
    error = math.sqrt((boot_sd**2 + run_sd**2 / runs) / boots_a_side)
    sides = random.normal((0.0, effect), error, (20000, 2))
    shown = np.abs(sides[:, 1] - sides[:, 0]) > 1.96 * math.sqrt(2) * error
    assert shown.mean() == pytest.approx(0.95, abs=0.006)


def test_smallest_effect_grows_with_both_spreads_and_shrinks_with_boots_and_runs() -> None:
    # variance of a side's mean: (0.3^2 + 0.5^2 / 4) / 9
    expected = (stats.norm.ppf(0.995) + stats.norm.ppf(0.95)) * math.sqrt(2 * (0.09 + 0.0625) / 9)
    assert smallest_effect(0.5, 0.3, 9, 4, 0.01) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("run_sd", "boot_sd", "boot_cost", "expected"),
    [
        (1.0, 0.5, 25.0, 10),
        (1.0, 0.0, 25.0, 64),
        (0.0, 0.0, 25.0, 1),
        (1.0, 5.0, 0.0, 1),
        (1.0, 0.001, 25.0, 64),
    ],
)
def test_runs_per_boot(run_sd: float, boot_sd: float, boot_cost: float, expected: int) -> None:
    # sqrt(boot cost / run cost) run_sd / boot_sd
    assert runs_per_boot(boot_cost, 1.0, [(boot_sd, 1.0)], run_sd, 64) == expected


def test_runs_and_boots_that_cost_nothing() -> None:
    assert runs_per_boot(0.0, 0.0, [(1.0, 1.0)], 1.0, 64) == 64
    assert runs_per_boot(10.0, 0.0, [(1.0, 1.0)], 1.0, 64) == 64


@given(SD, SD, st.floats(1, 100), st.floats(0.1, 10))
def test_one_known_spread_gives_the_closed_form(
    run_sd: float, boot_sd: float, boot_cost: float, run_cost: float
) -> None:
    best = math.sqrt(boot_cost / run_cost) * run_sd / boot_sd
    found = runs_per_boot(boot_cost, run_cost, [(boot_sd, 1.0)], run_sd, 64)
    assert found == 64 or found * (found - 1) <= best**2 * 1.0001
    assert found == 64 or found * (found + 1) >= best**2 * 0.9999


def test_a_spread_that_is_only_possible_counts_with_its_weight() -> None:
    few, many = (runs_per_boot(25.0, 1.0, [(s, 1.0)], 1.0, 64) for s in (1.0, 0.1))
    mixed = runs_per_boot(25.0, 1.0, [(1.0, 0.5), (0.1, 0.5)], 1.0, 64)
    assert few < mixed <= many


def test_correlation_of_neighbouring_runs() -> None:
    random = np.random.default_rng(1)
    free = [random.standard_normal(10) for _ in range(200)]
    assert correlation(free) == pytest.approx(0, abs=0.05)
    pairs = [np.repeat(random.standard_normal(20), 2) for _ in range(50)]
    assert correlation(pairs) == pytest.approx(0.5, abs=0.08)
    beside = (np.eye(50, k=1) + np.eye(50, k=-1)) / 2
    centred = np.eye(50) - 1 / 50
    smoothest = np.linalg.eigh(centred @ beside @ centred)[1][:, -1]
    assert correlation([np.array([1.0, 2.0, 3.0])] * 2) == pytest.approx(2 / 6), "nothing but the correction"
    assert correlation([smoothest]) == 1.0, "the correction must not give more than there can be"
    assert correlation([np.array([1.0, 2.0])]) == correlation([np.ones(5)]) == 0.0


@pytest.mark.filterwarnings("error")
def test_runs_that_do_not_scatter_need_no_repetition() -> None:
    assert runs_per_boot(25.0, 1.0, [(0.0, 1.0)], 0.0, 64) == 1
