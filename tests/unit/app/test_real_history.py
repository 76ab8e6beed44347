"""The simulator's real histories: the shape of a repository's range, and ends that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.real_history import real_graph
from bisector.errors import RequestError
from tests.support.small_git import SmallGit


def test_the_shape_of_a_range_with_a_merge(tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "linux").make("a\nb: a\nc: b\nd: b\nm: c d\n")
    graph = real_graph(small.path, "a", "m")
    names = [small.name(sha) for sha in graph.shas]
    assert set(names) == {"a", "b", "c", "d", "m"}
    assert (names[graph.good], names[graph.bad]) == ("a", "m")
    parents = {names[i]: {names[p] for p in above} for i, above in enumerate(graph.parents)}
    assert parents == {"a": set(), "b": {"a"}, "c": {"b"}, "d": {"b"}, "m": {"c", "d"}}


def test_an_end_that_is_not_there_is_a_wrong_request(tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "linux").make("a\nb: a\n")
    with pytest.raises(RequestError, match="nowhere"):
        real_graph(small.path, "a", "nowhere")
