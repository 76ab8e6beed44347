"""Two modes: found where they are, with their sizes, and hardly ever in normal values."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats import bimodality
from tests.support.samples import normal


def test_two_groups_are_found_with_their_sizes() -> None:
    found = bimodality.find([normal(7, 1), normal(5, 2, level=120.0)])
    assert found is not None
    assert found.counts == (7, 5)
    assert found.by_boot
    mixed = bimodality.find([normal(6, 3) + normal(4, 4, level=130.0)] * 2)
    assert mixed is not None
    assert not mixed.by_boot


@pytest.mark.parametrize("count", [8, 12, 16, 30, 64])
def test_normal_values_are_one_group(count: int) -> None:
    found = [bimodality.find([normal(count, seed)]) for seed in range(200)]
    assert sum(g is not None for g in found) <= 3  # once in a thousand sets: 4 of 200 come once in 20,000


def test_too_few_values_and_equal_values_are_not_judged() -> None:
    assert bimodality.find([(1.0, 1.0, 1.0, 9.0, 9.0, 9.0)]) is None
    assert bimodality.find([(5.0,) * 20]) is None
    exact = bimodality.find([(5.0,) * 6 + (6.0,) * 6])
    assert exact is not None  # an exact clock that gives two values


def test_modes_of_many_runs_may_lie_closer() -> None:
    found = bimodality.find([normal(60, 1), normal(60, 2, level=105.2)])
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.03)
    assert (found.low, found.high) == pytest.approx((100, 105.2), abs=0.5)
    assert bimodality.find([normal(60, 1), normal(60, 2, level=103.0)]) is None


@pytest.mark.parametrize("count", [30, 100, 1000])
def test_uniform_values_have_one_mode(count: int) -> None:
    random = np.random.default_rng(count)
    found = [bimodality.find([random.uniform(90, 110, count).tolist()]) for _ in range(100)]
    assert sum(m is not None for m in found) <= 3


def test_a_stray_run_does_not_take_a_boot_out_of_its_mode() -> None:
    low, high = normal(20, 1), normal(20, 2, level=130.0)
    strayed = bimodality.find([(*low, 130.0), high])
    assert strayed is not None
    assert strayed.by_boot
    often = bimodality.find([(*low, 130.0, 130.5, 131.0), high])
    assert often is not None
    assert not often.by_boot


def test_what_is_not_finite_does_not_count() -> None:
    found = bimodality.find([(float("nan"), *normal(6, 1)), (), (*normal(6, 2, level=130.0), float("inf"))])
    assert found is not None
    assert found.counts == (6, 6)
    assert found.by_boot


@pytest.mark.parametrize(
    ("count", "bound"), [(8, 9.5), (9, 9.5), (10, 8.0), (15, 8.0), (16, 6.0), (23, 6.0), (24, 5.0), (96, 4.5)]
)
def test_fewer_values_need_a_clearer_split(count: int, bound: float) -> None:
    """Too near a bound calls chance two modes; too far a one hides that boots have two levels."""
    for distance, two in ((bound - 0.1, False), (bound + 0.1, True)):
        sides = [(-1.0) ** np.arange(size) for size in (count // 2, count - count // 2)]
        low, high = ((side - side.mean()) / side.std(ddof=1) for side in sides)
        values = [*(1000.0 + low), *(1000.0 + distance + high)]
        assert (bimodality.find([values]) is not None) == two, distance


@pytest.mark.parametrize("seed", range(12))
def test_the_split_has_the_largest_distance_of_means_in_spreads(seed: int) -> None:
    """By numpy's own variances, over every split of two modes that overlap a little."""
    values = np.sort([*normal(5, seed), *normal(9, seed + 50, level=107.0, spread=0.5)])
    found = bimodality.find([values.tolist()])
    splits = range(bimodality.MIN_MEMBERS, len(values) - bimodality.MIN_MEMBERS + 1)
    parts = [(values[:at], values[at:]) for at in splits]
    distances = [(b.mean() - a.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2) for a, b in parts]
    needed = next(d for least, d in bimodality.SEPARATION if len(values) >= least)
    if found is None:
        assert max(distances) <= needed
    else:
        assert max(distances) > needed
        assert found.counts[0] == splits[int(np.argmax(distances))]
