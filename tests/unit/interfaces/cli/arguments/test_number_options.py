"""Numbers in options: what is in the range is taken, everything else is refused with the range in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.errors import RequestError
from bisector.interfaces.cli.arguments.number_options import ALPHA, Range, parse_percentage, range_of
from bisector.schemas.request import Request

WHOLE = Range(int, 1, 64)
POSITIVE = Range(float, 0, 100, above=True)


@pytest.mark.parametrize(
    ("limits", "text", "value"),
    [(WHOLE, "1", 1), (WHOLE, "64", 64), (POSITIVE, "1e-9", 1e-9), (ALPHA, "0.4", 0.4)],
)
def test_a_number_in_the_range(limits: Range, text: str, value: float) -> None:
    assert limits.read(text) == value


@pytest.mark.parametrize("limits", [WHOLE, POSITIVE, ALPHA])
@pytest.mark.parametrize(
    "text", ["", "x", "nan", "inf", "-inf", "-1", "0", "1e309", "9" * 5000, "0x10", "1 2"]
)
def test_another_text_is_refused(limits: Range, text: str) -> None:
    with pytest.raises(ValueError, match="is not a") as caught:
        limits.read(text)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("limits", "shown", "words"),
    [
        (WHOLE, "1<=x<=64", "'x' is not a whole number from 1 to 64"),
        (POSITIVE, "0<x<=100", "'x' is not a number above 0 and up to 100"),
        (ALPHA, "0.000001<=x<0.5", "'x' is not a number from 0.000001 and below 0.5"),
    ],
)
def test_a_range_is_shown(limits: Range, shown: str, words: str) -> None:
    assert str(limits) == shown
    with pytest.raises(ValueError, match="x") as caught:
        limits.read("x")
    assert str(caught.value) == words


@given(st.floats())
def test_what_is_read_is_in_the_range(value: float) -> None:
    inside = 0 < value <= 100
    if inside:
        assert POSITIVE.read(repr(value)) == value
    else:
        with pytest.raises(ValueError, match="number above 0"):
            POSITIVE.read(repr(value))


@pytest.mark.parametrize(
    ("text", "share"), [("0.1", 0.1), ("10%", 0.1), ("0", 0.0), ("100%", 1.0), (0.5, 0.5)]
)
def test_a_share_is_a_number_or_in_percent(text: str | float, share: float) -> None:
    assert Range(float, 0, 1).read_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["%", "101%", "nan%", "x%", "-1%", "1.1"])
def test_another_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="or 10%"):
        Range(float, 0, 1).read_share(text)


def test_every_number_of_a_request_has_two_ends() -> None:
    for name, field in Request.model_fields.items():
        for kind in (int, float):
            if field.annotation in (kind, kind | None):
                assert "inf" not in str(range_of(kind, field.metadata)), name


def test_percentages() -> None:
    assert parse_percentage("--least", "5%") == 0.05
    assert parse_percentage("--least", "-0.5%") == -0.005
    for text, words in (("5", "has no unit"), ("much", "is not a number"), ("%", "is not a number")):
        with pytest.raises(RequestError, match=f"--least: '{text}' {words}"):
            parse_percentage("--least", text)


@pytest.mark.parametrize("text", ["nan", "nan%", "inf", "-inf%", "1e999%"])
def test_a_percentage_that_is_no_number_is_not_said_to_lack_its_unit(text: str) -> None:
    with pytest.raises(RequestError, match=r"--threshold: '.*' is not a finite number") as caught:
        parse_percentage("--threshold", text)
    assert caught.value.cure == "write for example '5%'"
