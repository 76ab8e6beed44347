"""Grids of possible spreads: they reach as far as the data say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.search.endpoints import ENDS_BINARY_SPREAD_PRIOR
from bisector.search.measurement import Readings
from bisector.search.noise_priors import (
    BACKGROUND_PRIOR,
    BINARY_SPREAD_PRIOR,
    BOOT_SPREAD_PRIOR,
    DRIFT_PRIOR,
    GRID_FACTOR,
    TESTBED_PRIOR,
    binary_spreads,
    boot_spreads,
)
from bisector.search.noise_priors import (
    testbed_spreads as spreads_of_testbeds,
)
from tests.support.searching import Seen, context_of, linear


def readings(visits: Sequence[Seen]) -> Readings:
    found = context_of(linear(8), visits)[0].readings
    assert found is not None
    return found


def quiet(level: float, commit: int = 0, layout: int = 0, testbed: str = "t") -> Seen:
    return Seen(commit, (level, level + 0.01, level - 0.01), "verify", layout, testbed)


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=6))
def test_the_grid_covers_the_scatter_that_was_measured(offsets: list[float]) -> None:
    r = readings([quiet(100 + x) for x in offsets])
    grid = boot_spreads(r)
    sds = [sd for sd, _ in grid]
    assert sds == sorted(sds)
    assert sds[-1] >= np.std(r.location)
    assert len(grid) >= len(BOOT_SPREAD_PRIOR)
    assert all(prior > 0 for _, prior in grid)


def test_a_grid_grows_by_a_constant_factor() -> None:
    grid = boot_spreads(readings([quiet(80.0), quiet(120.0)]))
    beyond = [sd for sd, _ in grid[len(BOOT_SPREAD_PRIOR) - 1 :]]
    assert len(beyond) > 3
    assert np.diff(np.log(beyond)) == pytest.approx(np.log(GRID_FACTOR))


def test_boots_of_two_commits_say_nothing_about_the_boot_spread() -> None:
    r = readings([quiet(100.0, 0), quiet(150.0, 8)])
    assert len(boot_spreads(r)) == len(BOOT_SPREAD_PRIOR)


def test_binaries_of_one_commit_show_the_binary_spread() -> None:
    same = readings([quiet(100.0, 0, 0), quiet(130.0, 0, 0)])
    assert len(binary_spreads(same, 0.1)) == len(BINARY_SPREAD_PRIOR)
    layouts = readings([quiet(100.0, 0, 0), quiet(130.0, 0, 1)])
    assert binary_spreads(layouts, 0.1)[-1][0] > np.log(1.3)


@pytest.mark.parametrize(
    ("effect", "wanted"),
    [
        (0.2, ((0.0, 0.58), (0.02, 0.2), (0.05, 0.12), (0.1, 0.06), (0.2, 0.04))),
        (0.4, ((0.0, 0.58), (0.04, 0.2), (0.1, 0.12), (0.2, 0.06), (0.25, 0.04))),
        (2.0, ((0.0, 0.58), (0.2, 0.2), (0.25, 0.22))),
    ],
)
def test_binaries_are_not_believed_to_scatter_by_as_much_as_a_large_effect(
    effect: float, wanted: Sequence[tuple[float, float]]
) -> None:
    found = binary_spreads(readings([quiet(100.0, 0), quiet(300.0, 8)]), effect)
    assert np.array(found) == pytest.approx(np.array(wanted))
    measured = readings([quiet(100.0, 0, 0), quiet(200.0, 0, 1)])
    assert binary_spreads(measured, effect)[-1][0] > np.log(2)


def test_testbeds_may_differ_by_what_they_differ_by() -> None:
    assert spreads_of_testbeds(readings([quiet(100.0), quiet(200.0)]), 0.1) == ((0.0, 1.0),)
    far = spreads_of_testbeds(readings([quiet(100.0, testbed="a"), quiet(200.0, testbed="b")]), 0.1)
    assert far[-1][0] > np.log(2)
    near = spreads_of_testbeds(readings([quiet(100.0, testbed="a"), quiet(100.0, testbed="b")]), 0.1)
    assert [sd for sd, _ in near] == [0.1 * part for part, _ in TESTBED_PRIOR]


@pytest.mark.parametrize(
    "prior",
    [
        BOOT_SPREAD_PRIOR,
        BINARY_SPREAD_PRIOR,
        BACKGROUND_PRIOR,
        DRIFT_PRIOR,
        TESTBED_PRIOR,
        ENDS_BINARY_SPREAD_PRIOR,
    ],
)
def test_a_prior_sums_to_one_over_spreads_that_grow(prior: tuple[tuple[float, float], ...]) -> None:
    spreads = [spread for spread, _ in prior]
    assert sum(weight for _, weight in prior) == pytest.approx(1.0)
    assert spreads[0] == 0.0
    assert spreads == sorted(set(spreads))
    assert min(weight for _, weight in prior) > 0


@pytest.mark.parametrize("prior", [BACKGROUND_PRIOR, DRIFT_PRIOR])
def test_levels_may_wander_by_more_than_the_effect(prior: tuple[tuple[float, float], ...]) -> None:
    """Otherwise two culprits would be believed where a machine only grew warm."""
    assert prior[-1][0] > 1.0


def test_boots_of_two_testbeds_that_differ_in_the_change_tell_of_scatter() -> None:
    """One boot of each end on each: no commit was booted twice on a testbed."""
    ends = [quiet(100.0), quiet(100.0, 8), quiet(200.0, testbed="u"), quiet(200.0, 8, testbed="u")]
    uneven = [*ends[:3], quiet(210.0, 8, testbed="u")]
    assert boot_spreads(readings(ends))[-1][0] < 0.01
    assert boot_spreads(readings(uneven))[-1][0] > 0.1
