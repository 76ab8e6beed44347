"""Groups of values: combinations of labels, and weighted means."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats import grouping
from bisector.stats.grouping import average_cells, fit_two_ways, group_combinations, subtract_two_ways


def test_combinations_that_occur_are_sorted_and_each_entry_has_its_own() -> None:
    (first, second), place = group_combinations(np.array([1, 0, 1, 1]), np.array([2, 0, 0, 2]))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 2)]
    assert place.tolist() == [2, 0, 1, 2]


@pytest.mark.parametrize("dense", [True, False])
def test_cells_are_weighted_means_whose_scatter_lowers_the_likelihood(
    dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "MAX_DENSE_VISITS", 500 if dense else 0)
    weight = np.array([[1.0, 3.0, 2.0], [1.0, 1.0, 1.0]])
    mean, total, log = average_cells(weight, np.array([0.0, 4.0, 5.0]), np.array([0, 0, 1]))
    assert mean.tolist() == [[3.0, 5.0], [2.0, 5.0]]
    assert total.tolist() == [[4.0, 2.0], [2.0, 1.0]]
    assert log == pytest.approx([-0.5 * (12.0 - np.log(6.0) + np.log(8.0)), -0.5 * (8.0 + np.log(2.0))])


def test_two_ways_leave_the_residuals_of_least_squares() -> None:
    random = np.random.default_rng(2)
    one, other = random.integers(0, 4, 40), random.integers(0, 3, 40)
    values = 5.0 * one - 9.0 * other + random.standard_normal(40)
    design = np.concatenate([one[:, None] == np.arange(4), other[:, None] == np.arange(3)], axis=1).astype(
        float
    )
    expected = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    left, df = subtract_two_ways(values, one, other)
    assert left == pytest.approx(expected, abs=1e-9)
    assert df == 40 - 6


def test_effects_of_two_ways_are_those_of_weighted_least_squares_and_an_absent_label_has_none() -> None:
    random = np.random.default_rng(3)
    one, other = 2 * random.integers(0, 3, 40), random.integers(0, 3, 40)
    values, weight = 5.0 * one - 9.0 * other + random.standard_normal(40), random.uniform(0.1, 9.0, 40)
    design = np.concatenate([one[:, None] == np.arange(5), other[:, None] == np.arange(3)], axis=1)
    root = np.sqrt(weight)
    expected = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0]
    fit = fit_two_ways(values, weight, one, other)
    assert fit.first[[1, 3]].tolist() == [0.0, 0.0]
    assert fit.group.tolist() == [0, -1, 0, -1, 0]
    assert fit.first[[2, 4]] - fit.first[0] == pytest.approx(expected[[2, 4]] - expected[0], abs=1e-9)
    assert fit.second == pytest.approx(expected[5:] - expected[5], abs=1e-9)


def linked_by_ends(inner: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of inner commits, each on one of two testbeds, between two ends on both."""
    commits = np.arange(inner + 2)
    return np.concatenate([commits, [0, inner + 1]]), np.concatenate([commits % 2, [1, 1 - (inner + 1) % 2]])


@pytest.mark.parametrize("inner", [2, 40, 400])
def test_a_gap_that_only_two_ends_show_is_found_however_many_commits_are_between_them(inner: int) -> None:
    one, other = linked_by_ends(inner)
    values = 0.01 * np.sin(one) + 0.3 * other
    fit = fit_two_ways(values, np.ones(len(one)), one, other)
    assert fit.second == pytest.approx([0.0, 0.3], abs=1e-12)
    assert fit.first == pytest.approx(0.01 * np.sin(np.arange(inner + 2)), abs=1e-12)


def test_the_variance_of_a_difference_has_a_share_for_the_gap_between_testbeds() -> None:
    """The weights differ by commit and testbed, and the estimates are drawn 4,000 times."""
    random = np.random.default_rng(5)
    one, other = linked_by_ends(5)
    sd = random.uniform(0.5, 2.0, len(one))
    fits = [fit_two_ways(sd * random.standard_normal(len(one)), sd**-2.0, one, other) for _ in range(4000)]
    first = np.array([fit.first for fit in fits])
    for rows, factors in (([1, 2], [1, -1]), ([1, 3], [1, -1]), ([0, 6], [1, -1]), ([4, 1, 2], [1, -2, 1])):
        drawn = np.var(first[:, rows] @ factors)
        assert fits[0].contrast_variance(rows, factors) == pytest.approx(drawn, rel=0.08)


def test_second_labels_that_nothing_links_are_relative_to_their_own_group() -> None:
    one, other = np.array([0, 0, 1, 2, 2]), np.array([0, 2, 2, 3, 1])
    fit = fit_two_ways(np.array([1.0, 3.0, 9.0, 50.0, 20.0]), np.ones(5), one, other)
    assert fit.second.tolist() == [0.0, 0.0, 2.0, 30.0]
    assert fit.first.tolist() == [1.0, 7.0, 20.0]
    assert fit.group[0] == fit.group[1] != fit.group[2]


def test_two_testbeds_with_a_boot_of_each_end_have_one_degree_of_freedom_and_unlinked_ones_none() -> None:
    left, df = subtract_two_ways(
        np.array([1.0, 3.0, 11.0, 17.0]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    )
    assert (left.tolist(), df) == ([1.0, -1.0, -1.0, 1.0], 1)
    left, df = subtract_two_ways(np.array([1.0, 3.0]), np.array([5, 9]), np.array([0, 7]))
    assert (left.tolist(), df) == ([0.0, 0.0], 0)
