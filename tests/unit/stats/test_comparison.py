"""Comparing sets of samples: effects, intervals, and warnings in words."""

import numpy as np
import pytest

from bisector.model.records import Direction
from bisector.stats.comparison import Verdict, compare, hodges_lehmann, summarise

POUND = [6.9, 6.95, 6.88, 6.91, 9.269, 6.93, 6.9]


def boots(
    level: float, count: int, runs: int, seed: int, run: float = 0.01, boot: float = 0.005
) -> list[list[float]]:
    random = np.random.default_rng(seed)
    return [
        [level * (1 + b) * (1 + run * z) for z in random.standard_normal(runs)]
        for b in boot * random.standard_normal(count)
    ]


def test_shift_of_known_sets() -> None:
    assert hodges_lehmann(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0])) == 2.0


def test_outlier_moves_neither_effect_nor_verdict_and_is_named() -> None:
    base = [[6.9, 6.95, 6.88, 6.91], [6.92, 6.93, 6.9], [6.91, 6.9]]
    result = compare("real", base, [POUND[:4], POUND[4:], POUND[:2]], unit="s", threshold=0.05)
    assert abs(result.effect.estimate) < 0.01
    assert result.verdict != "worse"
    assert any("outlier" in w for w in result.warnings)


@pytest.mark.parametrize(
    ("better", "level", "verdict"),
    [("lower", 110, "worse"), ("lower", 90, "better"), ("higher", 110, "better"), ("higher", 90, "worse")],
)
def test_direction(better: Direction, level: float, verdict: Verdict) -> None:
    result = compare("m", boots(100, 5, 5, 1), boots(level, 5, 5, 2), better=better, threshold=0.05)
    assert result.verdict == verdict
    assert result.significant
    assert result.effect.low <= level / 100 - 1 <= result.effect.high


def test_same_and_unclear() -> None:
    assert compare("m", boots(100, 8, 8, 3), boots(100, 8, 8, 4), threshold=0.05).verdict == "same"
    wide = compare("m", boots(100, 2, 2, 5, 0.2, 0.2), boots(101, 2, 2, 6, 0.2, 0.2), threshold=0.01)
    assert wide.verdict == "unclear"
    assert not wide.significant


def test_thin_data_warns_instead_of_raising() -> None:
    one = compare("m", [[1.0]], [[2.0]])
    assert (one.verdict, one.p, one.method) == ("untested", None, "none")
    assert "a: 1 run: need 4 for a test at 5%" in one.warnings
    three = compare("m", [[1.0, 1.1, 0.9]], [[1.0, 1.2, 1.1]])
    assert "b: 3 runs: need 4 for a test at 5%" in three.warnings
    assert any("one boot" in w for w in three.warnings)


def test_equal_values_and_negative_values() -> None:
    same = compare("m", [[5.0] * 4] * 3, [[5.0] * 4] * 3, threshold=0.01)
    assert (same.verdict, same.effect.estimate) == ("same", 0.0)
    negative = compare("m", [[-1.0, -1.1], [-0.9]], [[-2.0, -2.1], [-1.9]])
    assert negative.plain.estimate == pytest.approx(-1.0)


def test_no_finite_value() -> None:
    with pytest.raises(ValueError, match="no finite value"):
        summarise("a", [[float("nan")]])


def test_coverage_of_the_interval() -> None:
    inside = 0
    for seed in range(80):
        r = compare("m", boots(100, 6, 4, 2 * seed), boots(103, 6, 4, 2 * seed + 1), seed=seed)
        inside += r.effect.low <= 0.03 <= r.effect.high
    assert inside >= 72  # 95% nominal, at least 94.8% by counting; 71 or fewer of 80 come once in a hundred


def test_false_alarms_are_as_rare_as_alpha() -> None:
    alarms = sum(
        compare("m", boots(100, 5, 3, 2 * seed + 1000), boots(100, 5, 3, 2 * seed + 1001)).significant
        for seed in range(200)
    )
    assert (
        alarms <= 17
    )  # 200 at 3.2% (the exact test of 5 and 5 boots is below 5%): 17 come once in a thousand


def test_runs_of_one_boot_do_not_count_as_independent() -> None:
    # two boots a side that scatter far more than their runs: runs pooled would say 'significant'
    a = [[100.0 + 0.01 * i for i in range(10)], [104.0 + 0.01 * i for i in range(10)]]
    b = [[103.0 + 0.01 * i for i in range(10)], [107.0 + 0.01 * i for i in range(10)]]
    assert not compare("m", a, b).significant


def test_exact_p_of_fully_apart_sides() -> None:
    result = compare("m", [[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]])
    assert result.p == pytest.approx(2 / 70)
    assert result.method == "exact"
