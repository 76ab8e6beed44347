"""Metrics of a manifest: thresholds, ratios, and where a number stands in the output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bisector.model.goal import Metric, Threshold
from bisector.schemas.workload.metric import MetricManifest, check_pattern, check_ratio, parse_threshold


def metric(name: str = "real", **other: object) -> MetricManifest:
    data = {"name": name, "unit": "s", "better": "lower", "threshold": "5%"}
    return MetricManifest.model_validate({**data, **other})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5%", Threshold(0.05)),
        (" 2.5 % ", Threshold(0.025)),
        ("0.1 s", Threshold(0.1, relative=False)),
        ("1e-3 s", Threshold(0.001, relative=False)),
    ],
)
def test_thresholds(text: str, expected: Threshold) -> None:
    assert parse_threshold(text, "s") == expected


@given(st.floats(min_value=1e-6, max_value=1e4))
def test_a_threshold_is_read_as_it_is_written(value: float) -> None:
    assert parse_threshold(f"{value!r} s", "s") == Threshold(value, relative=False)
    assert parse_threshold(f"{value!r}%", "s") == Threshold(value / 100.0, relative=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("much", "is not a number"),
        ("-5%", "is not a number"),
        ("5", "has no unit"),
        ("0%", "must be above zero"),
        ("5 ms", "is not in the metric's unit 's'"),
    ],
)
def test_a_wrong_threshold_says_what_would_be_right(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        parse_threshold(text, "s")
    assert "write '5%'" in str(caught.value)


def test_a_metric_of_the_manifest_is_one_of_the_search() -> None:
    assert metric(threshold="0.1 s").metric() == Metric("real", "s", "lower", Threshold(0.1, relative=False))


def test_a_unit_that_is_missing_is_told_without_the_threshold() -> None:
    with pytest.raises(ValidationError) as caught:
        metric(unit="")
    assert [error["loc"] for error in caught.value.errors()] == [("unit",)]


def test_a_ratio_names_two_metrics_that_are_printed() -> None:
    ipc = metric("ipc", ratio="instructions / cycles")
    assert ipc.operands == ("instructions", "cycles")
    assert metric().operands is None
    printed = (metric("instructions"), metric("cycles"))
    check_ratio(ipc, printed)
    with pytest.raises(ValueError, match="no metric 'cycles' is printed; did you mean 'cycle'"):
        check_ratio(ipc, (metric("instructions"), metric("cycle")))
    with pytest.raises(ValueError, match="leave 'at' out"):
        check_ratio(metric("ipc", ratio="instructions / cycles", at="x"), printed)
    with pytest.raises(ValueError, match="no metric 'cycles' is printed"):
        check_ratio(ipc, (metric("instructions"), metric("cycles", ratio="a / b")))


def test_a_ratio_is_as_optional_as_its_operands() -> None:
    ipc = metric("ipc", ratio="instructions / cycles")
    counters = (metric("instructions"), metric("cycles", optional=True))
    with pytest.raises(ValueError, match="must be optional, because 'cycles' is"):
        check_ratio(ipc, counters)
    check_ratio(ipc.model_copy(update={"optional": True}), counters)


@pytest.mark.parametrize(
    ("at", "words"),
    [("", "exactly one group"), ("(a)(b)", "exactly one group"), ("(", "not a regular expression")],
)
def test_a_pattern_needs_one_group(at: str, words: str) -> None:
    check_pattern(metric(at=r"took ([0-9.]+) s"))
    with pytest.raises(ValueError, match=words):
        check_pattern(metric(at=at))
