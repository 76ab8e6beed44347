"""The confirmation of a suspect: its outcomes, its errors, and what it asks for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bisector.model.dag import CommitDag
from bisector.model.decisions import Measure
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted
from bisector.model.state import State, Visit
from bisector.search.series import suspect_test
from bisector.search.series.suspect_test import MAX_BOOTS_PER_SIDE, SuspectVerdict, next_step
from bisector.stats.variance_components import VarianceComponents
from tests.support.searching import linear, make_evidence

GRAPH = linear(1)
DAG = CommitDag(GRAPH)
GOAL = Goal(Metric("time", "s", "lower", Threshold(0.01)), max_runs_per_boot=3)
NOISE = VarianceComponents(0.01, 400.0, 0.008, 180.0)


def visit(commit: int, values: list[float], number: int) -> Visit:
    booted = Booted(f"b{number}", commit, "t", True, 5.0, 60.0 * number, purpose="verify")
    return Visit(booted, samples=tuple(enumerate(values)), at=(60.0 * number,) * len(values), live=False)


def confirm(effect: float, seed: int, goal: Goal = GOAL) -> tuple[SuspectVerdict, list[Measure]]:
    """Play a confirmation; each boot has three runs. effect: relative change of the metric."""
    random = np.random.default_rng(seed)
    state, asked = State(GRAPH, goal), list[Measure]()
    while True:
        step = next_step(state, DAG, NOISE)
        if isinstance(step, SuspectVerdict):
            return step, asked
        asked.append(step)
        z = random.standard_normal(4)
        values = np.exp(effect * step.commit + NOISE.boot_sd * z[0] + NOISE.run_sd * z[1:]).tolist()
        state = replace(state, visits=(*state.visits, visit(step.commit, values, len(asked))))


def test_what_did_not_move_is_seldom_confirmed_and_what_moved_is() -> None:
    nothing = [confirm(0.0, seed)[0].outcome for seed in range(25)]
    assert nothing.count("confirmed") == 0
    assert nothing.count("rejected") > 10
    assert [confirm(0.025, seed)[0].outcome for seed in range(15)].count("confirmed") >= 14


def test_a_larger_change_costs_fewer_boots_and_both_sides_get_as_many() -> None:
    boots = [len(confirm(effect, 1)[1]) for effect in (0.1, 0.012)]
    assert boots[0] <= 6 < boots[1]
    commits = [m.commit for m in confirm(0.012, 1)[1]]
    assert commits[:4] == [0, 1, 1, 0]
    assert abs(2 * sum(commits) - len(commits)) <= 1


def test_a_gain_is_confirmed_where_a_fix_is_looked_for() -> None:
    assert confirm(-0.03, 1)[0].outcome == "rejected"
    assert confirm(-0.03, 1, replace(GOAL, find="fix"))[0].outcome == "confirmed"


def test_it_gives_up() -> None:
    verdicts = [confirm(0.006, seed) for seed in range(12)]
    undecided = [len(asked) for verdict, asked in verdicts if verdict.outcome == "undecided"]
    assert undecided and set(undecided) == {2 * MAX_BOOTS_PER_SIDE}
    assert max(len(asked) for _, asked in verdicts) == 2 * MAX_BOOTS_PER_SIDE


def moved(boots: int, start: int) -> tuple[Visit, ...]:
    """Return boots of both commits that differ by 2%, with some scatter of boots and runs."""
    return tuple(
        visit(k % 2, [1.0 + 0.004 * (k * 7 % 5 - 2) + 0.006 * j + 0.02 * (k % 2) for j in (-1, 0, 1)], k)
        for k in range(start, start + boots)
    )


@pytest.mark.parametrize("fresh", [0, 4])
def test_other_boots_do_not_count(fresh: int) -> None:
    """The boots of the series made the suspect; they are the extreme ones."""
    old = moved(32, 0)
    assert isinstance(next_step(State(GRAPH, GOAL, visits=old), DAG, NOISE), SuspectVerdict)
    old = tuple(replace(v, booted=replace(v.booted, purpose="search")) for v in old)
    step = next_step(State(GRAPH, GOAL, visits=(*old, *moved(fresh, 32))), DAG, NOISE)
    assert isinstance(step, Measure), "too few fresh ones"
    assert step.boot is None and f"boot {fresh // 2 + 1} of" in step.reason


@pytest.mark.parametrize("commit", [0, 1])
def test_a_commit_that_cannot_be_measured_leaves_it_undecided(commit: int) -> None:
    verdict = next_step(State(GRAPH, GOAL, untestable={commit: "it does not boot"}), DAG, NOISE)
    assert verdict == SuspectVerdict("undecided", None, "it does not boot")


EVIDENCE = make_evidence(-9.0, -9.0, 0.0, 0.02, 0.04, 0.01, 0.9, ((0.008, 1.0),))


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"log_e_change": math.log(100) - 0.01}, None),
        ({"log_e_change": math.log(100) + 0.01}, "confirmed"),
        ({"log_e_change": 9.0, "estimate": -0.02}, None),
        ({"log_e_below": math.log(20) - 0.01}, None),
        ({"log_e_below": math.log(20) + 0.01}, "rejected"),
        ({"log_e_below": math.log(20) + 0.01, "log_e_change": 9.0}, "rejected"),
    ],
)
def test_each_error_has_its_bound(
    change: dict[str, Any], outcome: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspect_test, "_compare", lambda _context: replace(EVIDENCE, **change))
    visits = tuple(visit(k % 2, [1.0, 1.01, 1.02], k) for k in range(4))
    step = next_step(State(GRAPH, GOAL, visits=visits), DAG, NOISE)
    assert (step.outcome if isinstance(step, SuspectVerdict) else None) == outcome
    one_each = next_step(State(GRAPH, GOAL, visits=visits[:2]), DAG, NOISE)
    assert isinstance(one_each, Measure), "a single boot cannot tell its own offset from the commit's"


def test_the_noise_of_past_nights_is_outweighed_by_ten_boots() -> None:
    """Runs now scatter five times as much as the series said."""
    random = np.random.default_rng(1)
    noise = 5 * NOISE.run_sd * random.standard_normal((20, 3))
    visits = tuple(visit(k % 2, np.exp(0.5 * (k % 2) + z).tolist(), k) for k, z in enumerate(noise))

    def effect_sd(df: float) -> float:
        step = next_step(State(GRAPH, GOAL, visits=visits), DAG, replace(NOISE, run_df=df))
        assert isinstance(step, SuspectVerdict) and step.evidence is not None
        return step.evidence.sd

    assert effect_sd(4000.0) == effect_sd(20.0) != effect_sd(5.0)


def test_an_exact_clock_is_believed_when_a_boot_has_repeated() -> None:
    exact = replace(GOAL, clock="instructions")
    levels = [1.0, 1.02, 1.02, 1.0]
    visits = tuple(visit(k, [levels[i]] * 2, i) for i, k in enumerate((0, 1, 1, 0)))
    one_each = next_step(State(GRAPH, exact, visits=visits[:2]), DAG)
    assert isinstance(one_each, Measure)
    two_each = next_step(State(GRAPH, exact, visits=visits), DAG)
    assert isinstance(two_each, SuspectVerdict) and two_each.outcome == "confirmed"
    other = visit(0, [1.005] * 2, 3)
    assert isinstance(next_step(State(GRAPH, exact, visits=(*visits[:3], other)), DAG), Measure)
