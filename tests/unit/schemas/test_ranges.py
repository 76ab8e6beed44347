"""The range of a number is said in its type once, and printed from there."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from bisector.schemas.ranges import Alpha, Hours, Nice, RestSeconds, Runs, range_text


class Numbers(BaseModel):
    runs: Runs = 3
    maybe: Runs | None = Field(default=None, description="x")
    nice: Nice = Field(default=0)
    alpha: Alpha = 0.05
    hours: Hours | None = None
    rest: RestSeconds = 0.0
    plain: int = 0
    text: str = ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("runs", "from 1 to 10,000"),
        ("maybe", "from 1 to 10,000"),
        ("nice", "from -20 to 19"),
        ("alpha", "at least 0.000001, below 0.5"),
        ("hours", "above 0, at most 100,000"),
        ("rest", "from 0 to 86,400"),
        ("plain", ""),
        ("text", ""),
    ],
)
def test_ranges_in_words(name: str, words: str) -> None:
    assert range_text(Numbers.model_fields[name]) == words
