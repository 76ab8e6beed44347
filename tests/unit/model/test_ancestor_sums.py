"""Sums over ancestors, against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.model.ancestor_sums import AncestorSums

Parents = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Parents:
    """Draw histories with several roots, octopus merges, and merges of what is merged already."""
    nodes = draw(st.integers(1, 30))
    return [
        draw(st.lists(st.integers(0, node - 1), max_size=4, unique=True)) if node else []
        for node in range(nodes)
    ]


def reachable(parents: Parents, start: int) -> set[int]:
    seen, todo = {start}, [start]
    while todo:
        above = set(parents[todo.pop()]) - seen
        seen |= above
        todo += above
    return seen


@settings(max_examples=200, deadline=None)
@given(graphs(), st.data())
def test_the_sum_of_a_node_is_that_of_its_ancestors_and_itself(parents: Parents, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=len(parents), max_size=len(parents)))
    weights = np.array(
        data.draw(st.lists(st.integers(0, 99), min_size=len(parents), max_size=len(parents))), float
    )
    sums = AncestorSums(parents, sizes).sums(weights)
    assert sums.tolist() == [weights[sorted(reachable(parents, node))].sum() for node in range(len(parents))]


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_news_are_what_the_main_parent_lacks(parents: Parents) -> None:
    """More would count twice, and would cost time and memory even where it did not."""
    prepared = AncestorSums(parents, [1] * len(parents))
    for node, above in enumerate(parents):
        new = set(prepared._new[prepared._owner == node].tolist())
        lacking = [reachable(parents, node) - {node} - reachable(parents, parent) for parent in above]
        assert new in lacking if above else new == set()


@pytest.mark.parametrize("longer", [0, 1])
def test_the_longer_side_of_a_merge_is_its_main_parent(longer: int) -> None:
    """A trunk of 100 commits merged into a topic of one: only the topic is new."""
    parents: Parents = [[], [0], [0], [1, 2]]
    sizes = [1, 1, 1, 1]
    sizes[1 + longer] = 100
    assert AncestorSums(parents, sizes)._new.tolist() == [2 - longer]
