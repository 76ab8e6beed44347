"""Terms: what people call the ends where a fix is looked for, and what they may write."""

from __future__ import annotations

import pytest

from bisector.model.goal import TERMS, Direction, Find, Goal, Metric, Threshold, Verdict


@pytest.mark.parametrize("find", ["regression", "fix"])
@pytest.mark.parametrize("verdict", ["good", "bad", "skip"])
def test_turning_twice_changes_nothing(find: Find, verdict: Verdict) -> None:
    turned = TERMS[find].turned(verdict)
    assert TERMS[find].turned(turned) == verdict
    assert (turned != verdict) == (find == "fix" and verdict != "skip")


def test_old_and_new_are_git_bisects_words_for_the_ends() -> None:
    for find, old, new in (("regression", "good", "bad"), ("fix", "bad", "good")):
        terms = TERMS[find]  # type: ignore[index]
        assert [terms.verdict(said) for said in ("old", "new", "skip", "good")] == [old, new, "skip", "good"]


@pytest.mark.parametrize(
    ("better", "find", "worse", "sought"),
    [
        ("lower", "regression", 1, 1),
        ("higher", "regression", -1, -1),
        ("lower", "fix", 1, -1),
        ("higher", "fix", -1, 1),
    ],
)
def test_a_rise_is_worse_where_less_is_better_and_a_fix_is_the_other_way(
    better: Direction, find: Find, worse: float, sought: float
) -> None:
    metric = Metric("m", "s", better, Threshold(0.05))
    assert metric.worse_sign == worse
    assert Goal(metric, find=find).sought_sign == sought
