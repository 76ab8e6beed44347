"""Numbers as text."""

from __future__ import annotations

import math

import pytest

from bisector.model.decisions import Interval
from bisector.model.format import (
    change,
    count,
    interval,
    percent,
    plain,
    size,
    two_figures,
    whole_number,
)


@pytest.mark.parametrize(("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_counts(number: int, text: str) -> None:
    assert count(number, "run") == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("5" * 5000, None),
        ("", None),
        ("-1", None),
        ("1.0", None),
        ("1\n", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("\N{ARABIC-INDIC DIGIT TWO}", None),
    ],
)
def test_a_text_that_is_no_number_of_64_bits_is_none(text: str, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.021, "+2.1%"),
        (-0.021, "-2.1%"),
        (0.0, "0.0%"),
        (0.0004, "0.0%"),  # zero after rounding has no sign
        (-0.0004, "0.0%"),
        (0.0006, "+0.1%"),
        (1.5, "+150.0%"),
        (math.inf, "?"),
        (math.nan, "?"),
        (1e99, "+1e+101%"),
        (-2.5e15, "-2.5e+17%"),
        (1e6, "+100000000.0%"),
    ],
)
def test_percentages(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 kB"),
        (12_345, "12 kB"),
        (999_999, "1000 kB"),
        (1e6, "1.0 MB"),
        (3.44e6, "3.4 MB"),
        (1.2e9, "1.2 GB"),
    ],
)
def test_sizes(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text


def test_intervals() -> None:
    assert interval(Interval(0.019, 0.021, 0.023)) == "+1.90% .. +2.30%"
    assert interval(Interval(-0.01, 0.0, 0.01), 0) == "-1% .. +1%"
    assert interval(Interval(-math.inf, 0.0, 0.01)) == "none"
    assert interval(Interval(0.0, 0.0, math.inf)) == "none"
    assert change(Interval(0.019, 0.021, 0.023)) == "+2.10% (+1.90% .. +2.30%)"
    assert change(Interval(0.1, 0.12, 0.14), "s") == "+0.12 s (+0.1 .. +0.14 s)"
    assert change(Interval(-math.inf, -0.5, math.inf), "s") == "-0.5 s (none)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Interval(0.000294, 0.000301, 0.000308), "+0.0301% (+0.0294% .. +0.0308%)"),
        (Interval(-0.00003, 0.00001, 0.00005), "+0.001% (-0.003% .. +0.005%)"),
        (Interval(0.01, 0.03, 0.05), "+3.00% (+1.00% .. +5.00%)"),
        (Interval(0.0500001, 0.05, 0.0500002), "+5.00% (+5.00% .. +5.00%)"),
        (Interval(0.02, 0.02, math.inf), "+2.00% (none)"),
    ],
)
def test_a_small_change_keeps_its_digits(value: Interval, text: str) -> None:
    """A summary said '+0.03% (+0.03% .. +0.03%)' at a threshold of 0.01%."""
    assert change(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0%"),
        (0.000421, "0.042%"),
        (0.0312, "3.1%"),
        (0.994, "99%"),
        (0.995, "100%"),
        (1.604, "160%"),
        (-31.87, "-3187%"),
        (1e20, "1e+22%"),
        (math.inf, "?"),
    ],
)
def test_shares_of_100_percent_and_more_are_whole(fraction: float, text: str) -> None:
    """The interval of a spread by two boots ended at '1.6e+02%'."""
    assert two_figures(fraction) == text
    assert two_figures(0.0312, "+") == "+3.1%"


@pytest.mark.parametrize(
    ("number", "text"), [(1e-6, "0.000001"), (1_000_000, "1,000,000"), (0.1, "0.1"), (50.0, "50"), (0, "0")]
)
def test_limits_have_no_exponent(number: float, text: str) -> None:
    assert plain(number) == text
