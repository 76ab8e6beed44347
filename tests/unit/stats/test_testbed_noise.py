"""The noise of each of several testbeds."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats.testbed_noise import TestbedNoise, boot_ratios, run_ratios


def ratios(runs: int, factors: tuple[float, ...]) -> TestbedNoise:
    random = np.random.default_rng(3)
    testbed = np.repeat(np.arange(len(factors)), runs)
    residuals = random.standard_normal(len(testbed)) * np.array(factors)[testbed]
    return run_ratios(residuals, np.ones(len(testbed)), testbed, len(factors), 1.0, 30.0, 1e-6)


def test_run_noise_of_one_to_three_is_learnt_and_of_equal_testbeds_is_not_invented() -> None:
    found = ratios(60, (0.5, 1.5)).run
    assert found[1] / found[0] == pytest.approx(3.0, rel=0.2)
    assert ratios(60, (1.0, 1.0)).run == pytest.approx(1.0, rel=0.12)


def test_heavy_tails_tell_less_of_a_scale() -> None:
    testbed = np.arange(40) % 2
    residuals = np.where(testbed == 1, 2.0, 1.0) * np.where(np.arange(40) % 4 < 2, 1.0, -1.0)
    ratio = {}
    for nu in (3.0, 30.0):
        found = run_ratios(residuals, np.ones(40), testbed, 2, 1.5, nu, 1e-6)
        ratio[nu] = found.run[1] / found.run[0]
    assert 1.0 < ratio[3.0] < ratio[30.0] - 0.1


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_the_unit_of_the_runs_does_not_matter(unit: float) -> None:
    testbed, residuals = np.arange(40) % 2, np.random.default_rng(2).standard_t(3.0, 40)
    plain = run_ratios(residuals, np.ones(40), testbed, 2, 1.0, 3.0, 1e-6)
    found = run_ratios(unit * residuals, np.ones(40), testbed, 2, unit, 3.0, unit * 1e-6)
    assert found.run == pytest.approx(plain.run, rel=1e-9)


def test_a_testbed_without_runs_is_like_the_others() -> None:
    testbed = np.zeros(30, dtype=np.int64)
    residuals = np.random.default_rng(1).standard_normal(30)
    found = run_ratios(residuals, np.ones(30), testbed, 2, 1.0, 30.0, 1e-6)
    assert found.run[1] == pytest.approx(found.run[0], rel=0.05)
    assert found.run_df[1] > 0


def test_the_degrees_of_freedom_of_a_mean_are_those_of_the_testbed_that_it_rests_on() -> None:
    noise = TestbedNoise(np.ones(2), np.array([10.0, 90.0]), np.ones(2))
    assert noise.pooled_df(np.array([1.0, 1e-9]), 100.0) == pytest.approx(10.0)
    assert noise.pooled_df(np.array([1.0, 1.0]), 100.0) == pytest.approx(36.0)
    assert noise.pooled_df(np.array([1.0, 9.0]), 100.0) == pytest.approx(100.0)
    assert noise.pooled_df(np.array([1.0, 9.0]), 50.0) == 50.0
    assert TestbedNoise.alike(1, 7.0).pooled_df(np.array([3.0]), 7.0) == 7.0


def booted(sds: tuple[float, ...], run_sd: float) -> np.ndarray:
    random = np.random.default_rng(5)
    cell = np.repeat(np.arange(4 * len(sds)), 10)
    testbed = cell % len(sds)
    location = 5.0 * testbed + np.array(sds)[testbed] * random.standard_normal(len(cell))
    location += run_sd * random.standard_normal(len(cell))
    return boot_ratios(location, np.full(len(cell), run_sd**-2 if run_sd else 1e12), cell, testbed)


def test_boots_that_scatter_more_on_one_testbed_are_told_apart() -> None:
    found = booted((1.0, 3.0), 0.01)
    assert found[1] / found[0] == pytest.approx(3.0, rel=0.3)
    assert booted((1.0, 1.0), 0.01) == pytest.approx(1.0, rel=0.15)


def test_boots_that_scatter_as_their_runs_explain_tell_nothing() -> None:
    assert booted((0.0, 0.0), 1.0) == pytest.approx(1.0, abs=0.7)
    quiet = np.array([0.0, 0.1, 0.0, 0.3])  # far less than runs scatter
    assert boot_ratios(quiet, np.ones(4), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])).tolist() == [
        1.0,
        1.0,
    ]
    one_each = boot_ratios(np.arange(4.0), np.ones(4), np.arange(4), np.array([0, 1, 0, 1]))
    assert one_each.tolist() == [1.0, 1.0]


def test_one_testbed_is_exactly_the_pool() -> None:
    assert booted((2.0,), 0.1).tolist() == [1.0]
