"""Cells, classes and priors as the posterior sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from bisector.search.design_matrix import (
    MAX_EXACT_TIMES,
    DesignMatrix,
    NoiseHypothesis,
    are_diagonal,
    build_design,
    class_shares,
    dense_covariances,
    few_groups,
    first_with_same_binary,
    fork_offset_sd,
    nested_covariances,
)
from tests.support.searching import Seen, context_of, graph_of, linear


def design(graph: CommitGraph, visits: list[Seen], **more: Any) -> DesignMatrix:
    context, _ = context_of(graph, visits)
    arguments: dict[str, Any] = {
        "same": {},
        "marks": {},
        "proven": (),
        "effect": 0.1,
        "blocks": 1,
        "count_log_prior": (-1.0, -1.0, -1.0),
    }
    return build_design(context.dag, context.readings, **(arguments | more))  # type: ignore[arg-type]


def test_a_cell_is_one_binary_on_one_testbed_in_one_block_of_time() -> None:
    visits = [Seen(0), Seen(8), Seen(8), Seen(8, layout=1), Seen(8, testbed="u")]
    p = design(linear(8), visits)
    assert p.cell.tolist() == [0, 1, 1, 3, 2]
    assert [p.tested[c] for c in p.commit] == [0, 8, 8, 8]
    assert p.binary.tolist() == [0, 1, 1, 2]
    assert len(design(linear(8), visits, blocks=5).commit) == 5  # the two equal visits are apart in time


def test_the_indicator_says_which_cells_contain_a_class() -> None:
    p = design(linear(8), [Seen(0), Seen(8), Seen(3)])
    assert p.tested == (0, 3, 8)
    older, newer = p.classes.label[2], p.classes.label[5]
    assert p.prior[[older, newer]] == pytest.approx([3 / 8, 5 / 8])
    assert p.indicator[older].tolist() == [0.0, 1.0, 1.0]
    assert p.indicator[newer].tolist() == [0.0, 0.0, 1.0]
    assert p.fixed.tolist() == [[1.0]] * 3
    assert p.shared_history[1, 2] == pytest.approx(3 / 8)
    assert p.shared_history[2, 2] == pytest.approx(1.0)


def test_proven_changes_are_columns_and_sets_count_by_their_contained_share() -> None:
    p = design(linear(8), [Seen(0), Seen(8), Seen(3)], proven=((2,), (3, 4)))
    assert p.fixed[:, 1].tolist() == [0.0, 1.0, 1.0]
    assert p.fixed[:, 2].tolist() == [0.0, 0.5, 1.0]


def test_a_commit_measured_inside_a_proven_set_has_a_level_of_its_own() -> None:
    """Else a class within the set would explain what its level is beside its share of the set's effect."""
    p = design(linear(8), [Seen(0), Seen(8), Seen(4), Seen(5)], proven=((3, 4, 5),))
    at = [p.tested[c] for c in p.commit]
    own = [[float(c == 4) for c in at]]
    assert p.fixed.T[2:].tolist() == own
    whole = design(linear(8), [Seen(0), Seen(8), Seen(5)], proven=((3, 4, 5), (7,)))
    assert whole.fixed.shape[1] == 3


def test_branches_that_left_a_proven_set_at_one_place_share_a_level() -> None:
    """2 to 4 are a proven set; 5 and 6 leave it after 2, 7 after 3."""
    parents = ((), (0,), (1,), (2,), (3,), (2,), (5,), (3,), (4, 6, 7))
    graph = graph_of(parents)
    p = design(graph, [Seen(c) for c in (0, 8, 4, 5, 6, 7)], proven=((2, 3, 4),))
    at = [p.tested[c] for c in p.commit]
    parts = [[float(c in some) for c in at] for some in ((5, 6), (7,))]
    assert sorted(p.fixed.T[2:].tolist()) == sorted(parts)
    share = {0: 0.0, 8: 1.0, 4: 1.0, 5: 1 / 3, 6: 1 / 3, 7: 2 / 3}
    assert p.fixed[:, 1].tolist() == pytest.approx([share[c] for c in at])


def test_contradicting_marks_leave_no_prior() -> None:
    p = design(linear(8), [Seen(0), Seen(8)], marks={5: "good", 3: "bad"})
    assert not p.prior.any()


def test_commits_of_one_binary_share_their_cell() -> None:
    p = design(linear(8), [Seen(0), Seen(8), Seen(3), Seen(5)], same={3: 3, 5: 3})
    assert p.cell.tolist() == [0, 2, 1, 1]


@pytest.mark.parametrize(
    ("binaries", "expected"),
    [
        ({(3, 0): "a", (5, 0): "a", (4, 0): "b"}, {3: 3, 4: 4, 5: 3}),
        ({(3, 1): "a", (5, 0): "a"}, {5: 5}),  # another layout is another binary
        ({(3, 0): "", (5, 0): ""}, {}),  # unknown binaries are not equal
    ],
)
def test_the_first_commit_of_a_binary(binaries: dict[tuple[int, int], str], expected: dict[int, int]) -> None:
    assert first_with_same_binary(binaries) == expected


def test_the_offset_of_a_fork_is_at_least_the_threshold() -> None:
    visits = [Seen(0), Seen(8)]
    assert fork_offset_sd(design(linear(8), visits, effect=0.01)) == pytest.approx(np.log(1.05))
    assert fork_offset_sd(design(linear(8), visits, effect=0.4)) == pytest.approx(0.2)


def test_a_commit_contains_a_share_of_its_class_by_weight() -> None:
    dag = CommitDag(linear(4, weights={1: 3.0}))
    classes = dag.partition((0, 4))
    assert class_shares(dag, classes, dag.ancestors(1)) == pytest.approx([0.5])
    assert class_shares(dag, classes, dag.ancestors(2)) == pytest.approx([4 / 6])
    assert class_shares(dag, classes, dag.ancestors(4)) == pytest.approx([1.0])


def test_cells_of_one_fork_base_share_its_offset_on_one_testbed_and_on_several() -> None:
    """0 good - 3 - 4 merge - 5 bad; the branch 1 - 2 lacks good's history, 1 is below it."""
    parents = ((), (), (1,), (0,), (3, 2), (4,))
    graph = CommitGraph(tuple(f"{i:040x}" for i in range(6)), parents, (False, False, *[True] * 4), 0, 5)
    visits = [Seen(c, testbed=t) for c in (0, 1, 2, 3, 5) for t in ("t", "u")]
    noise = NoiseHypothesis(0.0, 0.01, 0.02, 0.0, 0.03)
    several = design(graph, visits)
    diagonal = np.full((1, len(several.commit)), 0.1)
    branch = several.fork > 0
    assert {several.tested[c] for c in several.commit[branch]} == {1, 2}
    k = 0.1 * np.eye(len(branch)) + 0.01**2 * (several.binary[:, None] == several.binary)
    k += 0.02**2 * several.shared_history + 0.03**2 * (several.testbed[:, None] == several.testbed)
    k += fork_offset_sd(several) ** 2 * np.outer(branch, branch)
    nested, _ = nested_covariances(several, (noise,), diagonal)
    assert nested.solve_one(np.eye(len(k)), 0) == pytest.approx(np.linalg.inv(k))
    one = design(graph, [v for v in visits if v.testbed == "t"])
    dense = dense_covariances(one, (replace(noise, testbed=0.0),), diagonal[:, : len(one.commit)])
    on_one = several.testbed == 0
    assert dense[0] == pytest.approx(k[np.ix_(on_one, on_one)] - 0.03**2)


LAYOUTS = [Seen(c, layout=layout) for _ in range(2) for c in (0, 8) for layout in range(3)]
"""Two boots each of three binaries of two commits."""


def test_on_one_testbed_the_structure_tells_what_the_matrix_does() -> None:
    """Binaries in two blocks of time and in one, and a commit of one cell."""
    p = design(linear(8), [*LAYOUTS, Seen(8, layout=3), Seen(3)], blocks=2)
    assert set(np.bincount(p.binary).tolist()) == {1, 2}
    p = replace(p, time=np.round(2 * p.time) / 2)  # cells share their time
    noises = tuple(
        NoiseHypothesis(0.0, *sd) for sd in ((0.01, 0.0, 0.0), (0.01, 0.02, 0.03), (0.0, 0.02, 0.0))
    )
    diagonal = np.linspace(0.0001, 0.0004, 3 * len(p.commit)).reshape(3, -1)
    nested, cell = nested_covariances(p, noises, diagonal)
    dense = dense_covariances(p, noises, diagonal)
    assert p.commit[cell].tolist() == sorted(set(p.commit.tolist()))
    for g, matrix in enumerate(dense):
        assert nested.solve_one(np.eye(len(matrix)), g) == pytest.approx(np.linalg.inv(matrix))
        assert nested.log_determinant[g] == pytest.approx(np.linalg.slogdet(matrix)[1])


@pytest.mark.parametrize(
    ("visits", "noise", "blocks", "expected"),
    [
        (LAYOUTS, NoiseHypothesis(0.1, 0.01), 1, True),  # each binary is one cell
        (LAYOUTS, NoiseHypothesis(0.1, 0.01), 2, False),
        (LAYOUTS, NoiseHypothesis(0.1), 2, True),
        (LAYOUTS, NoiseHypothesis(0.1, background=0.01), 1, False),
        (LAYOUTS, NoiseHypothesis(0.1, drift=0.01), 1, False),
    ],
)
def test_covariances_are_diagonal_unless_cells_share_something(
    visits: list[Seen], noise: NoiseHypothesis, blocks: int, expected: bool
) -> None:
    p = design(linear(8), visits, blocks=blocks)
    assert are_diagonal(p, (NoiseHypothesis(0.2), noise)) == expected


def test_the_offset_of_a_fork_is_shared() -> None:
    parents = ((), (), (0, 1), (2,))
    graph = CommitGraph(tuple(f"{i:040x}" for i in range(4)), parents, (False, False, True, True), 0, 3)
    assert not are_diagonal(design(graph, [Seen(0), Seen(1), Seen(3)]), (NoiseHypothesis(0.1),))


@pytest.mark.parametrize(
    ("noise", "cells", "expected"),
    [
        (NoiseHypothesis(0.1, background=0.01), 6, True),  # six cells of two commits
        (NoiseHypothesis(0.1, background=0.01), 4, True),
        (NoiseHypothesis(0.1, background=0.01), 3, False),
        (NoiseHypothesis(0.1, 0.01), 6, False),  # diagonal
        (NoiseHypothesis(0.1, drift=0.01), 6, False),  # two commits and six times
    ],
)
def test_groups_are_few_if_they_are_half_as_many_as_cells(
    noise: NoiseHypothesis, cells: int, expected: bool
) -> None:
    visits = [Seen(8 * (i % 2), layout=i // 2) for i in range(cells)]
    assert few_groups(design(linear(8), visits), (NoiseHypothesis(0.2), noise)) == expected


def test_with_several_testbeds_groups_are_always_few() -> None:
    p = design(linear(8), [Seen(0), Seen(8, testbed="u")])
    assert few_groups(p, (NoiseHypothesis(0.1),))


def test_many_cells_have_the_time_of_their_block() -> None:
    visits = [Seen(8 * (i % 2), layout=i // 2) for i in range(MAX_EXACT_TIMES + 1)]
    few, many = (design(linear(8), visits[:count], blocks=4) for count in (MAX_EXACT_TIMES, len(visits)))
    assert len(np.unique(few.time)) == MAX_EXACT_TIMES
    assert len(np.unique(many.time)) == 4
    assert np.unique(many.time) == pytest.approx([1 / 8, 3 / 8, 5 / 8, 7 / 8], abs=1 / MAX_EXACT_TIMES)


def test_cells_on_several_testbeds_have_the_time_of_their_block() -> None:
    visits = [Seen(c, testbed=t) for c in (0, 8, 3, 5) for t in "tu"]
    assert len(np.unique(design(linear(8), visits, blocks=2).time)) == 2
    assert len(np.unique(design(linear(8), visits[::2], blocks=2).time)) == 4
