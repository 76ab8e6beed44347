"""What a priority may be, on the command line."""

from __future__ import annotations

import pytest

from bisector.interfaces.cli.arguments.priorities import read_priority


@pytest.mark.parametrize(
    ("text", "number"), [("high", 2), ("normal", 5), ("low", 8), ("1", 1), ("9", 9), ("5", 5)]
)
def test_a_word_or_a_digit(text: str, number: int) -> None:
    assert read_priority(text) == number
    assert read_priority(number) == number, "a default is one already"


@pytest.mark.parametrize("text", ["", "0", "10", "-1", "High", "urgent", "1.5", "\u0663", "x" * 10_000])
def test_nothing_else(text: str) -> None:
    with pytest.raises(
        ValueError, match="is not a priority: high, normal or low, or a number from 1"
    ) as error:
        read_priority(text)
    assert len(str(error.value)) < 200
