"""Units: the same in other words, converted, or not comparable."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bisector.stats.samples import SampleSeries
from bisector.stats.units import convert, factor, to_base


@pytest.mark.parametrize(
    ("unit", "other", "by"),
    [
        ("s", "s", 1),
        ("sec", "s", 1),
        ("ms", "s", Fraction(1, 1000)),
        ("s", "ms", 1000),
        ("us", "ns", 1000),
        ("min", "s", 60),
        ("MiB", "B", 1 << 20),
        ("MB/s", "kB/s", 1000),
        ("B/ms", "B/s", 1000),
        ("calls/min", "calls/s", Fraction(1, 60)),
        ("GHz", "MHz", 1000),
        ("jOPs", "jOPs", 1),
    ],
)
def test_a_unit_in_another(unit: str, other: str, by: Fraction | int) -> None:
    assert factor(unit, other) == by


@pytest.mark.parametrize(
    ("unit", "other"),
    [
        ("s", "B"),
        ("s", ""),
        ("", "s"),
        ("KB", "kB"),
        ("KB", "KiB"),
        ("ops/s", "calls/s"),
        ("s", "B/s"),
        ("%", ""),
    ],
)
def test_units_that_do_not_compare(unit: str, other: str) -> None:
    assert factor(unit, other) is None
    with pytest.raises(ValueError, match="cannot be converted"):
        convert(SampleSeries(((1.0,),), unit), other)


def test_numbers_are_converted_exactly_and_the_rest_stays() -> None:
    found = convert(SampleSeries(((1000.0, 1500.0), (3.0,)), "ms", "lower", 0.01, 3), "s")
    assert found == SampleSeries(((1.0, 1.5), (0.003,)), "s", "lower", 0.01, 3)


@pytest.mark.parametrize(
    ("unit", "by"),
    [
        ("us", Fraction(1, 10**6)),
        ("KiB", 1024),
        ("KB", 1000),
        ("MB/s", 10**6),
        ("Gbits/sec", 10**9),
        ("K", 1000),
        ("Mops/s", 10**6),
        ("ns/op", Fraction(1, 10**9)),
        ("ops/min", Fraction(1, 60)),
        ("m", 1),
        ("Mystery", 1),
        ("", 1),
    ],
)
def test_a_prefix_is_taken_off_for_the_numbers_of_one_program(unit: str, by: Fraction | int) -> None:
    assert to_base(unit) == by
