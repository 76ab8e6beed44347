"""The commit graph as arrays, on small random histories."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.model import dag
from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from tests.support.searching import linear


@st.composite
def graphs(draw: st.DrawFn) -> CommitGraph:
    n = draw(st.integers(2, 40))
    parents: list[tuple[int, ...]] = [()]
    for i in range(1, n):
        count = draw(st.integers(1, 4))
        parents.append(tuple(sorted({draw(st.integers(max(0, i - 6), i - 1)) for _ in range(count)})))
    shas = tuple(f"{i:040x}" for i in range(n))
    return CommitGraph(shas, tuple(parents), (False, *[True] * (n - 1)), 0, n - 1)


def reachable(graph: CommitGraph, start: int) -> set[int]:
    seen, todo = {start}, [start]
    while todo:
        for p in graph.parents[todo.pop()]:
            if p not in seen:
                seen.add(p)
                todo.append(p)
    return seen


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_ancestors_masses_and_descendants(graph: CommitGraph) -> None:
    history = CommitDag(graph)
    n = len(graph.shas)
    weights = np.random.default_rng(n).random(n)
    mass = history.mass(weights)
    for commit in range(n):
        expected = reachable(graph, commit)
        assert set(np.flatnonzero(history.ancestors(commit))) == expected
        assert np.isclose(mass[commit], weights[sorted(expected)].sum())
    whole = {i for i in range(n) if 0 in reachable(graph, i)}
    assert set(np.flatnonzero(history.contains_good())) == whole


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_partition_groups_exactly_what_tested_commits_cannot_tell_apart(
    graph: CommitGraph, data: st.DataObject
) -> None:
    history = CommitDag(graph)
    n = len(graph.shas)
    tested = tuple(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=6))))
    classes = history.partition(tested)
    signature = {c: tuple(c in reachable(graph, t) for t in tested) for c in range(n) if graph.candidate[c]}
    for a in signature:
        for b in signature:
            assert (classes.label[a] == classes.label[b]) == (signature[a] == signature[b])
        assert tuple(classes.contains[classes.label[a]]) == signature[a]
    assert np.isclose(classes.prior.sum(), 1)


def test_a_commit_of_no_weight_is_in_no_class() -> None:
    """It cannot be the culprit: in a class of its own it would be a suspect all the same."""
    classes = CommitDag(linear(8, weights={3: 0.0, 4: 0.0})).partition((0, 2, 4, 8))
    assert classes.label[[3, 4]].tolist() == [-1, -1]
    assert sorted(classes.size.tolist()) == [2, 4]
    assert classes.prior.sum() == pytest.approx(1.0)


def test_the_keys_of_classes_are_the_published_ones() -> None:
    """The same in every version: classes are numbered by them, and a resumed search must go on alike."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # of SplitMix64 with seed 0
    steps = [dag._splitmix(np.array([k])) for k in range(3)]
    assert [int(one[0]) for one in steps] == first


def test_masks_of_ancestors_are_kept_up_to_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed again for each decision they would take most of its time; kept without end, all memory."""
    searched: list[int] = []
    search = CommitDag._reached

    def counted(history: CommitDag, segment: int) -> dag.Mask:
        searched.append(segment)
        return search(history, segment)

    monkeypatch.setattr(CommitDag, "_reached", counted)
    graph = linear(300)
    kept = CommitDag(graph)
    for _ in range(2):
        assert [int(kept.ancestors(commit).sum()) for commit in range(300)] == list(range(1, 301))
    assert len(searched) == 300
    monkeypatch.setattr(dag, "MAX_MASK_BYTES", 100 * 301 // 8)
    bounded = CommitDag(graph)
    for commit in range(101):
        bounded.ancestors(commit)
    searched.clear()
    bounded.ancestors(100)
    assert searched == []
    assert np.array_equal(bounded.ancestors(0), [True, *[False] * 300])
    assert searched == [0], "the oldest one went"


def test_fork_points_share_their_base() -> None:
    #   0 good, 1 an older fork point; 2-3 branch from 1; 4-5 from good; 6 merges
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(7)),
        ((), (), (1,), (2,), (0,), (4,), (3, 5)),
        (False, False, True, True, True, True, True),
        0,
        6,
    )
    history = CommitDag(graph)
    assert history.fork_base(2) == history.fork_base(3) != b""
    assert history.fork_base(4) == history.fork_base(6) == b""
    assert list(np.flatnonzero(history.contains_good())) == [0, 4, 5, 6]
    assert list(np.flatnonzero(history.ancestors_of_same_base(3))) == [1, 2, 3]


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_a_lineage_is_the_ancestors_with_the_same_base(graph: CommitGraph, data: st.DataObject) -> None:
    n = len(graph.shas)
    below = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4)))
    below = sorted({0, *(a for b in below for a in reachable(graph, b))})
    graph = dataclasses.replace(graph, candidate=tuple(i not in below for i in range(n)))
    history = CommitDag(graph)
    for commit in range(n):
        base = reachable(graph, commit) & set(below)
        same = {a for a in reachable(graph, commit) if reachable(graph, a) & set(below) == base}
        assert set(np.flatnonzero(history.ancestors_of_same_base(commit))) == same


def test_a_commit_has_the_base_of_good_only_if_it_contains_all_merge_bases() -> None:
    # 0, 1 merge bases; 2 good merges them; 3 lacks base 1; 4 lacks base 0; 5 merges 3 and 4
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(6)),
        ((), (), (0, 1), (0,), (1,), (3, 4)),
        (False, False, False, True, True, True),
        2,
        5,
        merge_bases=(0, 1),
    )
    history = CommitDag(graph)
    assert history.fork_base(2) == history.fork_base(5) == b""
    assert history.fork_base(3) != b""
    assert history.fork_base(4) not in (b"", history.fork_base(3))
    assert list(np.flatnonzero(history.contains_good())) == [2, 5]
    assert history.fork_numbers((2, 3, 4, 5)).tolist() == [0, 1, 2, 0]
