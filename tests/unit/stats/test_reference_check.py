"""One more boot of a fixed kernel against the first ones: what stands out, and what does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bisector.stats.reference_check import FALSE_ALARM_ALPHA, LEAST_BOOTS, REFERENCE_BOOTS, judge

RANDOM = np.random.default_rng(7)


def boot(level: float = 1.0, boots: float = 0.002, runs: float = 0.005, count: int = 8) -> list[float]:
    own = level * np.exp(boots * RANDOM.standard_normal())
    return [float(v) for v in own * np.exp(runs * RANDOM.standard_normal(count))]


def reference(count: int = REFERENCE_BOOTS) -> list[list[float]]:
    return [boot() for _ in range(count)]


def test_the_first_boots_are_kept_and_not_judged() -> None:
    found = judge(reference(LEAST_BOOTS - 1), boot(3.0))
    assert (found.judged, found.sound, found.boots) == ("kept", True, LEAST_BOOTS - 1)


def test_a_level_that_moved_is_told_with_its_size() -> None:
    found = judge(reference(), boot(1.10))
    assert found.judged == "moved" and not found.sound
    assert found.change is not None and found.p is not None
    assert found.change.low <= 0.10 <= found.change.high
    assert found.p <= FALSE_ALARM_ALPHA
    assert judge(reference(), boot(0.90)).judged == "moved", "faster is another machine, too"


def test_what_is_significant_but_small_is_no_reason() -> None:
    steady = [[1.0, 1.0001, 0.9999]] * 8
    assert judge(steady, [1.01, 1.0101, 1.0099]).judged == "as before"
    assert judge(steady, [1.03, 1.0301, 1.0299]).judged == "moved"


def test_an_exact_clock_has_no_spread_and_can_be_judged() -> None:
    exact = [[100.0, 90.0, 90.0]] * 3
    assert judge(exact, [100.0, 90.0, 90.0]).judged == "as before"
    assert judge(exact, [130.0, 120.0, 120.0]).judged == "moved"


def test_runs_that_spread_far_more_are_noisy_and_one_outlier_moves_no_level() -> None:
    noisy = judge(reference(), boot(runs=0.08))
    assert noisy.judged in ("noisy", "moved")
    assert noisy.spread > 0.02 > noisy.usual
    found = judge(reference(), [*boot()[:7], 1.05])
    assert found.judged == "as before", "the outlier's spread is below the least that matters"


@pytest.mark.parametrize("boots", [LEAST_BOOTS, 5, REFERENCE_BOOTS])
def test_a_sound_testbed_seldom_stands_out(boots: int) -> None:
    # Boots that scatter by 3%, so that the least shift spares none: at .001 2 of 2,000 are expected.
    wrong = sum(
        not judge([boot(boots=0.03) for _ in range(boots)], boot(boots=0.03)).sound for _ in range(500)
    )
    assert wrong <= 4, "four of 500 at 0.001 has a chance of 0.2%"


def test_the_reference_is_the_first_boots_and_does_not_follow_a_drift() -> None:
    drifting = [boot(1 + 0.01 * k) for k in range(30)]
    assert judge(drifting, boot(1.3)).judged == "moved"


def test_the_interval_is_that_of_one_more_boot_by_student_t() -> None:
    levels = np.array([0.0, 0.01, -0.02, 0.03])
    found = judge([[float(np.exp(level))] for level in levels], [float(np.exp(0.1))])
    assert found.change is not None and found.p is not None
    error = levels.std(ddof=1) * np.sqrt(1 + 1 / 4)
    shift = 0.1 - levels.mean()
    assert found.p == pytest.approx(2 * stats.t.sf(shift / error, 3))
    half = stats.t.ppf(1 - FALSE_ALARM_ALPHA / 2, 3) * error
    assert found.change.low == pytest.approx(np.expm1(shift - half))
    assert found.change.high == pytest.approx(np.expm1(shift + half))


def spread_of(percent: float, count: int = 3) -> list[float]:
    """Return runs around 1 with about this standard deviation."""
    shape = np.linspace(-1, 1, count)
    return [float(v) for v in np.exp(percent / 100 * shape / shape.std(ddof=1))]


@pytest.mark.parametrize(
    ("usual", "now", "runs", "judged"),
    [
        (3.0, 10.5, 3, "noisy"),
        (3.0, 7.5, 3, "as before"),  # by chance once in a hundred boots
        (3.0, 5.4, 200, "as before"),  # beyond chance, and less than twice as much
        (3.0, 6.6, 200, "noisy"),
    ],
)
def test_a_spread_counts_that_is_twice_as_large_and_beyond_chance(
    usual: float, now: float, runs: int, judged: str
) -> None:
    found = judge([spread_of(usual, runs)] * REFERENCE_BOOTS, spread_of(now, runs))
    assert found.judged == judged
    assert [found.spread, found.usual] == pytest.approx([now / 100, usual / 100])
    if judged == "noisy":
        within = REFERENCE_BOOTS * (runs - 1)
        assert found.p == pytest.approx(stats.f.sf((now / usual) ** 2, runs - 1, within))
