"""How numbers are said in reports."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator

import pytest

from bisector.model.decisions import Interval
from bisector.model.format import percent
from bisector.model.goal import Metric, Threshold
from bisector.report import phrases

SECONDS = Metric("real", "s", "lower", Threshold(0.05))


@pytest.mark.parametrize(
    ("estimate", "low", "high", "better", "said"),
    [
        (0.1924, 0.1886, 0.1962, "lower", "+19.2% slower (+18.9% .. +19.6%)"),
        (0.1924, 0.1886, 0.1962, "higher", "+19.2% faster (+18.9% .. +19.6%)"),
        (-0.1, -0.11, -0.0996, "lower", "-10.0% faster (-11.0% .. -10.0%)"),
        (-0.0001, -0.0863, 0.0942, "lower", "0.0% the same (-8.6% .. +9.4%)"),
        (0.0004, -0.0004, 0.0863, "lower", "0.0% the same (0.0% .. +8.6%)"),
        (0.02, -math.inf, math.inf, "lower", "+2.0% slower (no interval)"),
        (0.02, -math.inf, 0.03, "lower", "+2.0% slower (no interval)"),
        (0.02, 0.01, math.inf, "lower", "+2.0% slower (no interval)"),
    ],
)
def test_effect(estimate: float, low: float, high: float, better: str, said: str) -> None:
    metric = Metric("real", "s", better, Threshold(0.05))  # type: ignore[arg-type]
    assert phrases.effect(Interval(estimate=estimate, low=low, high=high), metric) == said


def test_what_is_no_time_is_more_or_less() -> None:
    """A loss of signal was 'slower', which says nothing of where it went."""
    noise = Metric("snr", "dB", "higher", Threshold(3.0, relative=False))
    assert phrases.effect(Interval(-0.254, -0.247, -0.239), noise) == (
        "-24.7% less, worse (-25.4% .. -23.9%)"
    )
    assert phrases.change(40.0, 30.0, noise) == "-25.00% less, worse"
    assert phrases.verdict(-0.2, noise) == "worse"
    assert phrases.verdict(0.2, SECONDS) == "slower"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Interval(0.000194, 0.0002, 0.000206), "+0.0200% slower (+0.0194% .. +0.0206%)"),
        (Interval(-0.00003, 0.00001, 0.00005), "+0.001% slower (-0.003% .. +0.005%)"),
        (Interval(0.0500001, 0.05, 0.0500002), "+5.00% slower (+5.00% .. +5.00%)"),
        (Interval(0.0, 0.0, 0.0), "0.00% the same (0.00% .. 0.00%)"),
    ],
)
def test_a_small_effect_has_an_interval(value: Interval, said: str) -> None:
    """An effect of 0.02% was '+0.02% (+0.02% .. +0.02%)'."""
    assert phrases.effect(value, SECONDS) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.8314, "83.1%"),
        (0.99872, "99.9%"),
        (0.9991, "over 99.9%"),
        (1.0, "over 99.9%"),
        (0.0012, "0.1%"),
        (0.001, "0.1%"),
        (0.999, "99.9%"),
        (0.0, "under 0.1%"),
    ],
)
def test_a_probability_is_told_to_a_thousandth_at_most(value: float, said: str) -> None:
    assert phrases.probability(value) == said


def test_small_numbers_keep_their_digits() -> None:
    assert phrases.number(9.87654e-6) == "0.000009877"
    assert phrases.number(1.5e-9) == "1.5e-09", "1.5 ns in seconds"
    assert phrases.number(-1.23456e-7) == "-1.2346e-07"
    assert phrases.number(2e-11, 1.5e-9) == "2e-11", "a spread beside its level"
    assert phrases.number(0.0, 1.5e-9) == "0"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (5.0, 6.0, "+20.00% slower"),
        (-5.0, -6.0, "-20.00% faster"),
        (-5.0, -4.0, "+20.00% slower"),
        (0.0, 1.5, "+1.5000 s slower"),
        (0.0, -1.5, "-1.5000 s faster"),
        (0.0, 0.0, "0 s the same"),
        (100.0, 100.002, "+0.0020% slower"),
        (100.0, 99.9999, "-0.0001% faster"),
        (100.0, 100.00001, "0.00% the same"),
        (100.0, 100.0 + 1e-13, "0.00% the same"),
    ],
)
def test_a_change_is_of_the_size_of_what_was_before(before: float, after: float, said: str) -> None:
    assert phrases.change(before, after, SECONDS) == said


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        (Threshold(0.0001), "+0.031% slower"),
        (Threshold(0.00001), "+0.0312% slower"),
        (Threshold(1.0), "+0.03% slower"),
        (Threshold(0.0001, relative=False), "+0.03% slower"),
    ],
)
def test_a_change_has_the_digits_of_the_threshold(threshold: Threshold, said: str) -> None:
    assert phrases.change(100.0, 100.0312, dataclasses.replace(SECONDS, threshold=threshold)) == said


@pytest.mark.parametrize(
    ("percent", "said"),
    [(19.41, "+19.4"), (-0.06, "-0.1"), (0.03, "+0.03"), (-0.0123, "-0.012"), (0, "+0.0")],
)
def test_what_rounds_to_nothing_keeps_two_figures(percent: float, said: str) -> None:
    assert phrases.tenths(percent, "+") == said
    assert phrases.tenths(percent) == said.removeprefix("+")


def test_percent_of_what_is_no_number() -> None:
    assert percent(math.nan) == "?"


def test_a_name_in_a_remark_begins_no_note_of_its_own() -> None:
    assert phrases.remarks(["a\nnote: b"], ["c\nnote: d"]) == ["a\\nnote: b", "", "note: c\\nnote: d"]


@pytest.mark.parametrize(
    ("value", "said", "counted"),
    [
        (1e99, "1e+99", "1e+99"),
        (-1.23456789e100, "-1.2346e+100", "-1.2346e+100"),
        (1e15, "1e+15", "1e+15"),
        (999_999_999_999_999.0, "999999999999999", "999,999,999,999,999"),
        (123_456.0, "123456", "123,456"),
    ],
)
def test_numbers_without_meaningful_digits_are_short(value: float, said: str, counted: str) -> None:
    assert phrases.number(value) == phrases.number(value, 1e99) == said
    assert phrases.number(value, 0.1).removesuffix(".00000") == said, "beside smaller ones"
    assert phrases.amount(value) == counted


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host whose clock shows the time of Tokyo."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_times_are_told_in_the_unit_that_fits_and_in_utc() -> None:
    told = [phrases.duration(seconds) for seconds in (9.94, 10.0, 99.0, 100.0, 99 * 60, 100 * 60)]
    assert told == ["9.9 s", "10 s", "99 s", "2 min", "99 min", "1 h 40 min"]
    assert phrases.date(0.0) == "1970-01-01 00:00 UTC"


def test_a_text_that_fits_is_not_cut() -> None:
    assert [phrases.cut("abcdef", width) for width in (6, 5, 2)] == ["abcdef", "ab...", "..."]
