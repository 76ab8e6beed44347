"""Nothing is asked for without end: commits that read no number, each purpose, and what the budget allows."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from bisector.model.decisions import Ending, Measure, Purpose
from bisector.model.goal import Budget
from bisector.model.state import fold
from bisector.search.limits import effort
from bisector.search.limits.effort import budget_shortfall, why_exhausted, without_silent_commits
from tests.support.searching import Seen, context_of, drive, goal, linear, records_of, step


@pytest.mark.parametrize(
    ("budget", "trial", "words"),
    [
        (Budget(seconds=62), Measure(0, 1, "search", ""), ""),
        (Budget(seconds=61), Measure(0, 1, "search", ""), "56 s are spent"),
        (Budget(seconds=81), Measure(2, 1, "search", ""), "leaves no room"),
        (Budget(builds=2), Measure(2, 1, "search", ""), "2 builds is spent"),
        (Budget(builds=2), Measure(0, 1, "search", ""), ""),
        (Budget(builds=2), Measure(0, 1, "search", "", layout=1), "2 builds is spent"),
        (Budget(runs=8), Measure(0, 2, "search", ""), ""),
        (
            Budget(runs=8),
            Measure(0, 3, "search", ""),
            "of 8 runs leaves no room for the next trial, of 3 runs: 6 are spent.",
        ),
        (
            Budget(runs=6),
            Measure(0, 1, "search", ""),
            "of 6 runs leaves no room for the next trial, of 1 run: 6 are spent.",
        ),
        (Budget(seconds=57), Measure(0, 1, "search", "", boot="b0"), ""),
    ],
)
def test_a_trial_must_fit_into_the_budget(budget: Budget, trial: Measure, words: str) -> None:
    """Two builds of 20 s, two boots of 5 s and six runs of 1 s are spent: 56 s."""
    visits = [Seen(0), Seen(4)]
    context, _ = context_of(linear(4), visits, wanted=goal(budget=budget))
    said = budget_shortfall(context, trial)
    assert (words in said) if words else said == ""


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_a_purpose_ends_after_its_boots_and_says_how_many(
    purpose: Purpose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "MAX_BOOTS_PER_PURPOSE", 4)
    for boots, ends in ((4, False), (5, True)):
        rest = [Seen(1, purpose="verify" if purpose == "certify" else "certify")] * 40
        context, _ = context_of(linear(4), [*rest, *[Seen(0, purpose=purpose)] * boots])
        said = why_exhausted(context, purpose, {1})
        assert ("4 boots" in said) if ends else said == ""


@pytest.mark.parametrize(
    ("boots", "scan", "ends"), [(9, False, False), (10, False, True), (36, True, False), (37, True, True)]
)
def test_the_rest_may_take_as_much_as_all_before_the_last_proof(boots: int, scan: bool, ends: bool) -> None:
    """Boots take 5 s, three runs 3 s: 72 s with two builds up to the last proof."""
    before = [Seen(0, purpose="verify"), Seen(1, purpose="certify"), Seen(1, purpose="attribute")]
    visits = [*before, Seen(1, purpose="certify"), *[Seen(1, purpose="attribute")] * boots]
    said = why_exhausted(context_of(linear(4), visits, wanted=goal(scan=scan))[0], "attribute", {1})
    assert bool(said) is ends
    if ends:
        most = "four times as much" if scan else "as much"
        told = (
            f"{8 * boots} s of lab time since the last proof, and all before took 72 s: {most} is the most."
        )
        assert told in said


@pytest.mark.parametrize(
    ("boots", "proven", "ends"), [(10, {1}, False), (11, {1}, True), (11, {1, 2}, False)]
)
def test_fresh_boots_of_a_suspect_that_is_not_proven_give_the_rest_no_more_time(
    boots: int, proven: set[int], ends: bool
) -> None:
    """A suspect that never decides had the bound begin anew with each of its boots.

    Three boots of 8 s and three builds: 84 s up to the last proof.
    """
    before = [Seen(0, purpose="verify"), Seen(2, purpose="certify"), Seen(1, purpose="certify")]
    rest = [Seen(1, purpose="attribute")]
    visits = [*before, *rest * (boots - 1), Seen(2, purpose="certify"), *rest]
    said = why_exhausted(context_of(linear(4), visits)[0], "attribute", proven)
    assert bool(said) is ends


@pytest.mark.parametrize(
    ("boots", "ends"),
    [
        ([(math.nan,) * 3] * 2, False),
        ([(math.nan,) * 3] * 3, True),
        ([(math.nan,) * 12], True),
        ([(math.inf, -math.inf)] * 3, True),
        ([(math.nan,) * 3] * 4 + [(math.nan, 100.0)], False),
        ([()] * 5, False),
    ],
    ids=["two boots", "three boots", "many runs", "infinite", "one number", "no run"],
)
def test_a_commit_that_reads_no_number_cannot_be_tested(boots: list[tuple[float, ...]], ends: bool) -> None:
    visits = [Seen(0), *(Seen(2, values) for values in boots)]
    state = fold(linear(4), goal(), records_of(visits))
    assert (2 in without_silent_commits(state).untestable) is ends
    assert 0 not in without_silent_commits(state).untestable


def test_a_commit_without_a_number_is_asked_for_a_few_times_and_gone_around() -> None:
    def value(commit: int, run: int) -> float:
        return math.nan if commit == 8 else step(11)(commit, run)

    end, _, decisions = drive(linear(16), goal(), value)
    assert (end.ending, end.findings[0].commits) == (Ending.CULPRIT, (11,))
    runs, boots = zip(*((d.runs, d.boot is None) for d in decisions if d.commit == 8), strict=True)
    assert sum(runs) <= effort.MAX_RUNS_WITHOUT_READING + 1
    assert sum(boots) <= effort.MAX_BOOTS_WITHOUT_READING


def test_an_end_without_a_number_ends_the_search_and_says_so() -> None:
    end, _, decisions = drive(linear(16), goal(), lambda c, r: math.nan if c == 16 else step(11)(c, r))
    assert end.ending is Ending.INCONCLUSIVE
    assert "The bad end cannot be tested: none of" in end.summary
    assert len(decisions) < 12


def test_a_search_of_the_rest_that_ends_by_its_share_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "MAX_REST_SHARE", 0.0)
    random = np.random.default_rng(3)
    level = {5: 0.1, 20: 0.1}

    def value(commit: int, run: int) -> float:
        loss = sum(more for at, more in level.items() if commit >= at)
        return 100 * (1 + loss + 0.01 * random.standard_normal())

    end, _, _ = drive(linear(32), goal(), value)
    assert len(end.findings) == 1
    assert "The rest was not searched to its end. It has taken" in end.summary
