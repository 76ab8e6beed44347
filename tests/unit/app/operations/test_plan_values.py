"""Rows of a plan where there is one of something, or none; the rest is read in whole plans."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bisector.app.operations import plan_values
from bisector.model.records import Irrelevant


def plan(**parts: Any) -> Any:
    return SimpleNamespace(**parts)


@pytest.mark.parametrize(
    ("relevant", "irrelevant", "said"),
    [
        (
            3,
            Irrelevant((1, 2), {"compiled": 2, "merge": 1}, 2),
            "3 (compiled 2, merge 1); 2 others change nothing",
        ),
        (0, Irrelevant((1,), {}, 3), "0; 1 other changes nothing that the 3 builds in this range read"),
        (1234, Irrelevant((), {"compiled": 1234}, 2), "1,234 (compiled 1,234)"),
    ],
)
def test_how_many_commits_matter(relevant: int, irrelevant: Irrelevant, said: str) -> None:
    found = plan_values._relevant(plan(relevant=relevant, irrelevant=irrelevant))
    assert found.startswith(said)
    assert found == said or "nothing" in said


@pytest.mark.parametrize(
    ("reasons", "more"), [(3, ""), (4, " and 1 more reason"), (5, " and 2 more reasons")]
)
def test_reasons_that_are_not_named_are_counted(reasons: int, more: str) -> None:
    untestable = {number: f"reason {number}" for number in range(reasons)}
    said = plan_values._untestable(plan(graph=SimpleNamespace(untestable=untestable)))
    assert said.endswith(more or ")")
