"""Synthetic histories."""

import itertools

from bisector.simulation.histories import branched


def test_branched_histories_are_topological_connected_and_of_the_size_asked_for() -> None:
    for commits, seed in itertools.product((1, 2, 7, 300), range(5)):
        graph = branched(commits, seed)
        assert sum(graph.candidate) == commits
        assert all(p < i for i, parents in enumerate(graph.parents) for p in parents)
        children = {p for parents in graph.parents for p in parents}
        assert all(i in children for i in range(len(graph.shas)) if graph.candidate[i] and i != graph.bad)
    assert any(len(p) > 1 for p in branched(300, 1).parents)
