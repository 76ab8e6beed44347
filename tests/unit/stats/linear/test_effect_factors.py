"""Bayes factors of one and of two effects, against integrals over their prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from bisector.stats.linear.effect_factors import one_effect, two_effects

SCALE, LEAST = 2.0, 1.0
GRAM = np.array([[[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 4.0]]])
SLOPE = np.array([[3.0, -1.5, 0.4]])


def grid() -> tuple[np.ndarray, np.ndarray]:
    """Return effects beyond the least one, and the probability of each."""
    effects = np.arange(-16.0, 16.0, 0.002) + 0.001
    weight = norm.pdf(effects, scale=SCALE) * (np.abs(effects) >= LEAST)
    return effects, weight / weight.sum()


@pytest.mark.parametrize("k", [0, 1, 2])
def test_one_effect_is_the_integral_over_its_prior(k: int) -> None:
    effects, weight = grid()
    expected = math.log(weight @ np.exp(SLOPE[0, k] * effects - 0.5 * GRAM[0, k, k] * effects**2))
    assert one_effect(GRAM, SLOPE, SCALE, LEAST)[0, k] == pytest.approx(expected, abs=0.01)


def pairs(most: int) -> list[tuple[int, int]]:
    single, prior = one_effect(GRAM, SLOPE, SCALE, LEAST), np.array([0.5, 0.3, 0.2])
    first, second, factors = two_effects(GRAM, SLOPE, single, np.zeros(1), prior, SCALE, LEAST, most)
    assert factors.shape == (1, len(first))
    return list(zip(first.tolist(), second.tolist(), strict=True))


def test_pairs_are_formed_among_the_most_probable_columns() -> None:
    assert pairs(3) == [(0, 1), (0, 2), (1, 2)]
    assert pairs(2) == [(0, 1)]
    assert pairs(0) == []
