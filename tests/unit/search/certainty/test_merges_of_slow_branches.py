"""Whole searches where the branches of a merge hold losses of their own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from bisector.model.decisions import Conclusion
from bisector.simulation import histories
from tests.support.searching import drive, goal, graph_of


def searched(graph: CommitGraph, effects: dict[int, float], *, exact: bool) -> tuple[Conclusion, int]:
    """Search a history whose commits multiply the level by 1 + their effect; return also the trials."""
    dag = CommitDag(graph)

    def value(commit: int, run: int) -> float:
        level = math.prod(1 + effect for c, effect in effects.items() if dag.is_ancestor(c, commit))
        return 100.0 * level + (0.0 if exact else 0.05 * ((run * 7 + commit * 3) % 5 - 2))

    end, _, decisions = drive(graph, goal(clock="instructions") if exact else goal(), value)
    assert end.rest is not None
    assert abs(end.rest.estimate) < 0.01, "all of it is explained"
    return end, len(decisions)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("effects", [{1: 0.1, 2: 0.2}, {1: 0.1, 2: 0.2, 3: 0.15}, {1: 0.1, 2: 0.1, 3: 0.1}])
def test_a_merge_shows_its_own_change_and_not_those_of_its_branches(
    effects: dict[int, float], *, exact: bool
) -> None:
    """1 and 2 stand on good, 3 merges them. It was said to cost 26.5% in place of 15% before."""
    end, _ = searched(graph_of(((), (0,), (0,), (1, 2), (3,))), effects, exact=exact)
    assert {f.commits: round(f.effect.estimate, 2) for f in end.findings} == {
        (c,): effect for c, effect in effects.items()
    }


@pytest.mark.parametrize(
    ("effects", "found"),
    [
        ({2: 0.12, 3: 0.15}, {(2,): 0.12, (3, 4): 0.15}),
        ({2: 0.15, 3: 0.12}, {(2,): 0.15, (3, 4): 0.12}),
        ({2: 0.1, 3: 0.1}, {(1, 2): 0.1, (3, 4, 5, 6): 0.1}),
    ],
)
def test_where_a_loss_may_be_below_both_branches_what_a_merge_differs_by_is_said_to_be_in_a_set(
    effects: dict[int, float], found: dict[tuple[int, ...], float]
) -> None:
    """2, and 4 on 3, stand on 1; 1, 3 and the merge 5 cannot be tested. What 3 costs was missed before."""
    parents = ((), (0,), (1,), (1,), (3,), (2, 4), (5,))
    graph = graph_of(parents, untestable=dict.fromkeys((1, 3, 5), "skipped"))
    end, trials = searched(graph, effects, exact=False)
    assert {f.commits: round(f.effect.estimate, 2) for f in end.findings} == found
    assert trials <= 60


def test_two_losses_of_branches_that_lack_part_of_good_s_history_are_no_offset_of_theirs() -> None:
    """1 is older than good; 3 and 4 stand on it, and merges bring them."""
    parents = ((), (), (0,), (1,), (1,), (2, 3), (5, 4), (6,))
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(8)), parents, (False, False, *[True] * 6), good=0, bad=7
    )
    end, _ = searched(graph, {3: 0.1, 4: 0.2}, exact=False)
    assert [f.commits for f in end.findings] == [(3,), (4,)]


def test_likely_suspects_are_proven_where_no_trial_tells_much() -> None:
    """4 and 13 on a line, 21 on 12: no two of them explain it. They were measured over and over before."""
    line = [(c - 1,) for c in range(1, 21)]
    graph = graph_of(((), *line, (12,), (21,), (20, 22)))
    end, trials = searched(graph, {4: 0.21, 13: 0.21, 21: 0.2}, exact=True)
    assert [f.commits for f in end.findings] == [(4,), (13,), (21,)]
    assert trials <= 50


def test_what_splits_a_likely_class_is_measured_though_its_mass_is_not_in_the_middle() -> None:
    """1 is older than good; 3 and 18 stand on it, 4 merges 2 and 3, 20 merges 17 and 19."""
    line = [(c,) for c in range(4, 17)]
    parents = ((), (), (0,), (1,), (2, 3), *line, (1,), (18,), (17, 19), (20,), (21,))
    shas = tuple(f"{i:040x}" for i in range(len(parents)))
    graph = CommitGraph(shas, parents, (False, False, *[True] * 21), good=0, bad=22)
    end, _ = searched(graph, {4: 0.15, 19: 0.17}, exact=False)
    assert [f.commits for f in end.findings] == [(4,), (19,)]


@settings(max_examples=40, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    commits=st.integers(8, 28),
    broken=st.sampled_from((0.0, 0.1, 0.3)),
    more=st.booleans(),
    exact=st.booleans(),
)
def test_of_losses_on_branches_each_is_said_to_cost_what_it_costs(
    seed: int, commits: int, broken: float, *, more: bool, exact: bool
) -> None:
    """Two that are not above each other, and perhaps a third. Four of 295 told a false effect."""
    random = np.random.default_rng(seed)
    graph = histories.branched(commits, seed)
    candidates = [c for c, inside in enumerate(graph.candidate) if inside]
    holes = [c for c in candidates if c != graph.bad and random.random() < broken]
    graph = replace(graph, untestable=dict.fromkeys(holes, "skipped"))
    dag = CommitDag(graph)
    apart = [(a, b) for a in candidates for b in candidates if a < b and not dag.is_ancestor(a, b)]
    assume(apart)
    chosen = [*apart[random.integers(len(apart))], *([int(random.choice(candidates))] if more else [])]
    effects = {c: float(random.uniform(0.07, 0.22)) for c in dict.fromkeys(chosen)}

    def value(commit: int, run: int) -> float:
        level = math.prod(1 + effect for c, effect in effects.items() if dag.is_ancestor(c, commit))
        return 100.0 * level + (0.0 if exact else 0.05 * ((run * 7 + commit * 3) % 5 - 2))

    end, _, decisions = drive(graph, goal(clock="instructions") if exact else goal(), value)
    assert len(decisions) <= 150
    for finding in end.culprits:
        if finding.certified:
            held = math.prod(1 + effect for c, effect in effects.items() if c in finding.commits) - 1
            assert abs(finding.effect.estimate - held) < 0.012, (finding, effects)
