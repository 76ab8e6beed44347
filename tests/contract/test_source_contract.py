"""What every Source promises, asked of GitSource on a real repository, of a list of kernels, of the fake."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisector.adapters.git.source import GitSource
from bisector.adapters.packages.listed_kernels import ListedKernels
from bisector.errors import RequestError
from bisector.model.commit_graph import listed_id
from bisector.ports import Source
from bisector.schemas.kernel.listed_kernel import ListedKernel
from bisector.testing.fakes import FakeSource
from tests.support.small_git import SmallGit

HISTORY = "o\ng: o\nb: g\nx: o\nm: b x\nd: m\n"
"""Good g, bad d; x forked before good."""


@dataclass
class Given:
    """A source with this history, and the id of each name in it."""

    source: Source
    ids: dict[str, str]
    merged: tuple[str, ...] = ("b", "x")
    """The parents of m."""


def _real(folder: Path) -> Given:
    small = SmallGit(folder / "linux").make(HISTORY)
    return Given(GitSource(small.path, folder / "cache"), small.ids)


def _fake(folder: Path) -> Given:
    real = _real(folder)
    graph = real.source.graph(real.ids["g"], real.ids["d"])
    inside = {name: graph.shas.index(sha) for name, sha in real.ids.items() if sha in graph.shas}
    return Given(FakeSource(graph, inside), {name: graph.shas[number] for name, number in inside.items()})


def _listed(folder: Path) -> Given:
    """The same names in a line: a list has no merges."""
    kernels = [
        ListedKernel(
            id=listed_id(f"{name}-1", name.encode().hex() * 16),
            files=(f"/{name}.deb",),
            sums=(name,),
            package=f"linux-image-{name}",
            version=name,
            release=f"6.1-{name}",
            built="#1",
            by="Me <me@example.org>",
            when=1e9,
        )
        for name in "gbxmd"
    ]
    ids = {kernel.version: kernel.id for kernel in kernels}
    return Given(ListedKernels(kernels), ids, merged=("x",))


@pytest.fixture(params=[_real, _fake, _listed], ids=["git", "fake", "list"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Given:
    make: Callable[[Path], Given] = request.param
    return make(tmp_path)


def test_names_and_beginnings_of_ids_become_ids(given: Given) -> None:
    assert given.ids
    for name, sha in given.ids.items():
        assert (
            given.source.resolve(name) == given.source.resolve(sha[:12]) == given.source.resolve(sha) == sha
        )


def test_an_unknown_name_is_refused_by_its_name(given: Given) -> None:
    with pytest.raises(RequestError, match="'no-such-name'"):
        given.source.resolve("no-such-name")


def test_the_graph_is_sorted_and_complete(given: Given) -> None:
    graph = given.source.graph(given.ids["g"], given.ids["d"])
    place = {name: graph.shas.index(sha) for name, sha in given.ids.items()}
    assert {name for name, at in place.items() if graph.candidate[at]} == {"b", "x", "m", "d"}
    assert (graph.good, graph.bad, graph.merge_bases) == (place["g"], place["d"], ())
    assert graph.parents[place["m"]] == tuple(place[name] for name in given.merged)
    assert graph.parents[place["g"]] == ()
    assert all(parent < child for child, above in enumerate(graph.parents) for parent in above)


def test_the_same_question_has_the_same_answer(given: Given) -> None:
    ends = given.ids["g"], given.ids["d"]
    assert given.source.graph(*ends) == given.source.graph(*ends)


def test_skipped_commits_stay_in_the_graph_with_a_reason(given: Given) -> None:
    graph = given.source.graph(given.ids["g"], given.ids["d"], skip=["m"])
    at = graph.shas.index(given.ids["m"])
    assert graph.candidate[at]
    assert list(graph.untestable) == [at]
    assert graph.untestable[at]


@pytest.mark.parametrize("given", [_real, _listed], ids=["git", "list"], indirect=True)
@pytest.mark.parametrize(
    ("skip", "words", "cure"),
    [
        ("b...m", "--skip b...m: a range has two dots", "--skip b..m"),
        ("b..", "--skip 'b..' is not a range A..B", "both of its ends"),
        ("m..d", "--skip covers the bad end", "another (commit|kernel) for --bad"),
        ("g", "--skip covers the good end", "another (commit|kernel) for --good"),
    ],
)
def test_skips_that_cannot_be_are_refused_alike(given: Given, skip: str, words: str, cure: str) -> None:
    with pytest.raises(RequestError, match=re.escape(words)) as caught:
        given.source.graph(given.ids["g"], given.ids["d"], skip=[skip])
    assert re.search(cure, caught.value.cure)


@pytest.mark.parametrize("given", [_real, _listed], ids=["git", "list"], indirect=True)
def test_a_skipped_range_leaves_out_where_it_begins(given: Given) -> None:
    graph = given.source.graph(given.ids["g"], given.ids["d"], skip=["b..m"])
    skipped = {graph.shas[at] for at in graph.untestable}
    assert given.ids["m"] in skipped
    assert skipped.isdisjoint(given.ids[name] for name in "gbd")


def test_equal_ends_are_refused(given: Given) -> None:
    with pytest.raises(RequestError, match=r"the same (commit|kernel)"):
        given.source.graph(given.ids["g"], given.ids["g"])


def test_swapped_ends_are_refused(given: Given) -> None:
    with pytest.raises(RequestError):
        given.source.graph(given.ids["d"], given.ids["g"])


def test_a_commit_can_be_read(given: Given) -> None:
    info, other = given.source.infos([given.ids["m"], given.ids["b"]])
    assert other.sha == given.ids["b"]
    assert info.sha == given.ids["m"]
    assert info.subject
    assert info.author
    assert info.when > 0
    assert info.describe == ""
    (described,) = given.source.infos([given.ids["m"]], described={given.ids["m"]})
    assert described.describe
    assert given.source.infos([]) == []
