"""The scale of t residuals, how heavy their tails are, and boots that lie far from the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bisector.model.dag import Floats
from bisector.stats.student_t import (
    BOOT_TAIL_LOG_PRIOR,
    MAX_TAIL_FREEDOM,
    MIN_TAIL_KURTOSIS,
    BootTails,
    boot_tails,
    fit_scale,
    tails_of_levels,
)


def test_outliers_make_tails_heavy_and_hardly_change_the_scale() -> None:
    random = np.random.default_rng(1)
    z, weight = random.standard_normal(400), np.ones(400)
    clean, nu = fit_scale(z, weight, 1e-6)
    z[::20] += 10.0
    dirty, heavy = fit_scale(z, weight, 1e-6)
    assert heavy == 3.0 < nu
    assert clean == pytest.approx(0.9, rel=0.1)
    assert dirty == pytest.approx(clean, rel=0.25)


def test_the_scale_is_never_below_the_floor() -> None:
    assert fit_scale(np.zeros(50), np.ones(50), 0.5)[0] == 0.5


def tails_of(*cells: Floats, run_sd: float = 0.01, ratio: float = 1.0) -> BootTails | None:
    """Return the tails of boots, given the locations in each cell."""
    location = np.concatenate(cells)
    cell = np.repeat(np.arange(len(cells)), [len(of) for of in cells])
    count = len(location)
    return boot_tails(location, np.full(count, run_sd**-2), cell, np.full(count, ratio), 1e-3)[0]


def two_cells(draw: Floats) -> tuple[Floats, Floats]:
    """Return the values as the boots of two binaries, of which one is slower."""
    return draw[::2], draw[1::2] + 50.0


def share_with_tails(kind: str, boots: int) -> float:
    random = np.random.default_rng(3)
    draws = {
        "normal": lambda: random.standard_normal(boots),
        "t3": lambda: random.standard_t(3, boots),
        "even modes": lambda: random.integers(0, 2, boots) * 3.0 + 0.1 * random.standard_normal(boots),
        "modes 3:7": lambda: random.binomial(1, 0.3, boots) * 3.0 + 0.1 * random.standard_normal(boots),
    }
    return float(np.mean([tails_of(*two_cells(draws[kind]())) is not None for _ in range(200)]))


@pytest.mark.parametrize(
    ("kind", "boots", "least", "most"),
    [
        ("normal", 16, 0.0, 0.05),
        ("normal", 40, 0.0, 0.06),
        ("even modes", 40, 0.0, 0.0),
        ("modes 3:7", 40, 0.0, 0.05),
        ("t3", 40, 0.5, 1.0),
        ("t3", 200, 0.95, 1.0),
    ],
)
def test_heavy_tails_are_seen_where_there_are_some(kind: str, boots: int, least: float, most: float) -> None:
    assert least <= share_with_tails(kind, boots) <= most


def test_scale_and_freedom_are_those_of_the_boots() -> None:
    random = np.random.default_rng(5)
    values = 2.0 * random.standard_t(3, 2000) + 0.5 * random.standard_normal(2000)
    found = tails_of(*two_cells(values), run_sd=0.5)
    assert found is not None and found.freedom == 3.0
    assert math.sqrt(found.variance) == pytest.approx(2.0, rel=0.1)
    # A testbed whose boots scatter twice as much says the same of boots that scatter half as much.
    halved = tails_of(*two_cells(values), run_sd=0.5, ratio=2.0)
    assert halved is not None and halved.variance == pytest.approx(1.0 - 0.5**2 * 0.75, rel=0.2)


OUTLYING = np.array([0.0, 0.1, -0.1, 0.05, -0.05, 0.02, 0.11, -0.12, 0.03, -0.04, 0.08, -0.07, 5.0])


def test_tails_need_boots_that_tell_them() -> None:
    assert tails_of(OUTLYING) is not None
    assert tails_of(OUTLYING[-12:]) is None  # eleven degrees of freedom
    assert tails_of(*([y] for y in OUTLYING)) is None  # type: ignore[arg-type]  # each is of a binary of its own
    assert tails_of(OUTLYING, run_sd=0.2) is None  # runs explain the scatter of the others


def test_two_boots_of_a_binary_tell_of_tails() -> None:
    """Two boots of each of 13 binaries; those of one are far apart."""
    found = tails_of(*(np.array([0.0, x]) for x in OUTLYING))
    assert found is not None and found.freedom == 3.0


def test_as_many_boots_that_lie_apart_as_a_mode_has_are_no_tails() -> None:
    values = np.concatenate([OUTLYING, OUTLYING[:-1], [4.0]])
    assert tails_of(values) is not None  # 2 of 26
    assert tails_of(np.concatenate([values, [5.1, 4.9]])) is None  # 4 of 28: one in seven


def test_boots_that_a_normal_distribution_fits_as_well_have_no_tails() -> None:
    """Their kurtosis of 4.0 alone would call them heavy."""
    z = np.random.default_rng(2).standard_normal(16)
    z -= z.mean()
    assert np.mean(z**4) > MIN_TAIL_KURTOSIS * np.mean(z**2) ** 2
    assert tails_of(z) is None


def test_a_testbed_whose_boots_do_not_scatter_tells_nothing() -> None:
    count = len(OUTLYING)
    location, cell = np.concatenate([OUTLYING, OUTLYING]), np.repeat([0, 1], count)
    ratio = np.repeat([1.0, 0.0], count)
    found, squares = boot_tails(location, np.full(2 * count, 1e4), cell, ratio, 1e-3)
    assert found == tails_of(OUTLYING)
    assert np.array_equal(squares[count:], squares[:count])


def test_a_distance_is_corrected_for_what_the_boot_moves_the_median() -> None:
    _, squares = boot_tails(OUTLYING, np.full(13, 1e4), np.zeros(13, dtype=int), np.ones(13), 1e-3)
    assert squares[-1] == pytest.approx((5.0 - 0.02) ** 2 * 13 / 12)
    lone = np.append(OUTLYING, 3.0)
    _, squares = boot_tails(lone, np.full(14, 1e4), np.array([0] * 13 + [1]), np.ones(14), 1e-3)
    assert np.isinf(squares[-1])  # alone in its cell
    assert (np.isfinite(squares[:-1])).all()


def test_lone_boots_show_tails_by_their_distances_from_levels() -> None:
    def found(squares: Floats, ratio: Floats) -> BootTails | None:
        return tails_of_levels(squares, np.full(len(squares), 1e4), ratio, 1e-3)

    squares = np.append(OUTLYING, -0.03) ** 2
    assert found(squares[1:], np.ones(13)) is None  # eleven degrees of freedom: there are two levels
    tails = found(squares, np.ones(14))
    assert tails is not None and tails.freedom == 3.0
    doubled = found(4 * squares, np.full(14, 2.0))
    assert doubled is not None and doubled.variance == pytest.approx(tails.variance)
    steady = found(np.append(squares, 9.0), np.array([1.0] * 14 + [0.0]))
    assert steady is not None and steady.variance == pytest.approx(tails.variance)
    assert found(np.ones(20), np.ones(20)) is None


def test_light_tails_are_told_without_a_fit() -> None:
    """What the kurtosis rules out, the fit would hardly ever have called heavy."""
    random = np.random.default_rng(9)
    heavy = []
    for _ in range(600):
        z = random.standard_t(4, int(random.integers(7, 60)))
        z -= z.mean()
        if np.mean(z**4) < MIN_TAIL_KURTOSIS * np.mean(z**2) ** 2:
            heavy.append(fit_scale(z, np.ones(len(z)), 1e-6, BOOT_TAIL_LOG_PRIOR)[1] <= MAX_TAIL_FREEDOM)
    assert len(heavy) > 100 and np.mean(heavy) < 0.03


def test_a_boot_counts_less_the_farther_it_lies() -> None:
    tails = BootTails(3.0, 4.0)
    ratio, precision = np.array([1.0, 1.0, 1.0, 2.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0, np.inf, 1.0])
    stretch = tails.stretch(np.array([0.0, 5.0, 125.0, 125.0, 125.0, np.inf]), ratio, precision)
    # (3 + z^2) / (3 + 1) with z^2 over a variance of 4 + 1, 16 + 1 and 4.
    expected = [1.0, 1.0, math.sqrt(28 / 4), math.sqrt((3 + 125 / 17) / 4), math.sqrt((3 + 125 / 4) / 4), 1.0]
    assert stretch == pytest.approx(expected)
