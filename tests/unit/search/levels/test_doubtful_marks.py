"""A mark that measured levels contradict is told: no trial tests it, and a wrong one misleads the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bisector.model.decisions import Answer
from bisector.model.goal import Verdict
from bisector.model.records import Marked, Record
from bisector.model.state import State
from bisector.search.levels.doubtful_marks import MAX_DOUBTFUL, mark_warnings
from bisector.search.planner import Planner
from bisector.search.posterior import Posterior
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.support.searching import CENTRE, Seen, context_of, goal, linear

AT, LOSS = 40, 0.1


def told(
    marks: Sequence[tuple[int, str]], measured: Sequence[tuple[int, float]], spread: float = 0.002
) -> tuple[str, ...]:
    """Return what is told of marks in a search that has measured both ends and these (commit, level)."""
    random = np.random.default_rng(7)
    visits = [
        Seen(c, tuple(100 * level * (1 + spread * random.standard_normal(3))))
        for c, level in [(0, 1.0), (64, 1 + LOSS), *measured] * 3
    ]
    records: list[Record] = [Marked(commit, verdict) for commit, verdict in marks]  # type: ignore[arg-type]
    context, cache = context_of(linear(64), visits, wanted=goal(), records=records)
    return mark_warnings(context, cache, LOSS)


def name(commit: int) -> str:
    return f"{commit:040x}"[:12]


@pytest.mark.parametrize(
    ("mark", "verdict", "measured", "which"),
    [
        (8, "bad", (8, 1.0), "it reads"),
        (8, "bad", (20, 1.0), f"{name(20)} after it reads"),
        (56, "good", (56, 1 + LOSS), "it reads"),
        (56, "good", (48, 1 + LOSS), f"{name(48)} before it reads"),
    ],
)
def test_a_mark_that_a_level_contradicts_is_told_with_the_commit(
    mark: int, verdict: str, measured: tuple[int, float], which: str
) -> None:
    (text,) = told([(mark, verdict)], [measured])
    assert text.startswith(f"The mark of {name(mark)} as {verdict} does not fit: {which} ")
    assert "begins anew" in text


@pytest.mark.parametrize(
    ("mark", "verdict", "measured"),
    [
        (8, "good", [(8, 1.0), (20, 1.0), (48, 1 + LOSS)]),
        (56, "bad", [(8, 1.0), (48, 1 + LOSS), (56, 1 + LOSS)]),
        (30, "bad", [(8, 1.0), (20, 1.0)]),  # nothing behind it was measured
        (30, "good", [(48, 1 + LOSS)]),  # nor before this
        (30, "bad", []),
    ],
)
def test_a_mark_that_fits_or_that_nothing_tests_is_not_told(
    mark: int, verdict: str, measured: Sequence[tuple[int, float]]
) -> None:
    assert told([(mark, verdict)], measured) == ()


def test_a_commit_that_was_skipped_contradicts_nothing() -> None:
    assert told([(8, "bad"), (20, "skip")], [(20, 1.0)]) == ()


def test_levels_of_a_testbed_that_drifted_contradict_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Posterior, "noise_rms", lambda self, name: 0.01 if name == "drift" else 0.0)
    assert told([(8, "bad")], [(20, 1.0)]) == ()
    monkeypatch.setattr(Posterior, "noise_rms", lambda self, name: 0.009 if name == "drift" else 0.0)
    assert len(told([(8, "bad")], [(20, 1.0)])) == 1


def test_a_level_that_may_be_at_either_end_contradicts_nothing() -> None:
    assert told([(8, "bad")], [(20, 1.02)], spread=0.08) == ()
    assert told([(8, "bad")], [(20, 1 + 0.6 * LOSS)]) == ()


def test_the_first_three_are_told_in_the_order_of_history() -> None:
    marks = [(c, "bad") for c in (14, 12, 10, 8)]
    texts = told(marks, [(20, 1.0)])
    assert len(texts) == MAX_DOUBTFUL
    assert [name(c) in text for c, text in zip((8, 10, 12), texts, strict=True)] == [True] * 3


class Marking(Planner):
    """A planner in whose search somebody has marked a commit."""

    def __init__(self, marks: dict[int, Verdict]) -> None:
        super().__init__()
        self.marks = marks

    def next(self, state: State) -> Answer:
        return super().next(replace(state, marks=self.marks))


@pytest.mark.parametrize(("verdict", "many"), [("bad", 1), ("good", 0)])
def test_the_end_of_a_search_warns_of_a_wrong_mark_and_of_no_right_one(verdict: Verdict, many: int) -> None:
    conclusion = simulate_bisection(CENTRE, 1, Marking({8: verdict})).conclusion
    found = [text for text in conclusion.warnings if "does not fit" in text]
    assert len(found) == many
    assert bool(conclusion.culprits) == (verdict == "good")
