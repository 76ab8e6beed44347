"""Readers of what git prints, which a foreign repository decides: any text gives a value or our error."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bisector.adapters.git import backports
from bisector.adapters.git.changed_paths import parse_log
from bisector.adapters.git.graph import assemble_graph, parse_rev_list
from bisector.adapters.git.repository import GitResult, Repository
from bisector.adapters.git.source import GitSource
from bisector.errors import PerfbisectError
from bisector.linux.functions import changed_lines, functions_at
from bisector.schemas.kernel.release import release_of
from tests.support.small_git import SmallGit

ID = "0123456789abcdef" * 2 + "01234567"
OUTPUT = st.one_of(
    st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.lists(
        st.sampled_from(
            [ID, ID[::-1], "\0", "\n", "\t", " ", "A", "M\t", "a/b.c", "missing", "Fixes: ", "@@ -1 +1 @@"]
        )
    ).map("".join),
)
"""What git may print: any bytes, and its own words in any order."""


@given(OUTPUT)
@example(f"\0{ID}\n\t\0")
def test_logs_of_changed_paths(text: str) -> None:
    for sha, changes in parse_log(text).items():
        assert "\n" not in sha
        assert all(change.path for change in changes)


@given(OUTPUT, st.booleans())
def test_lists_of_commits_become_a_graph_or_are_refused(text: str, first_parent: bool) -> None:
    try:
        parents = parse_rev_list(text, first_parent=first_parent)
        graph = assemble_graph(parents, ID, ID[::-1])
    except PerfbisectError:
        return
    assert len(graph.shas) == len(graph.parents)


@given(OUTPUT)
def test_diffs_sources_and_makefiles(text: str) -> None:
    changed_lines(text)
    functions_at(text, {1, 2})
    release_of(text)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallGit]:
    yield SmallGit(tmp_path_factory.mktemp("any") / "linux").make("a\nb: a\n")


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OUTPUT, min_size=1, max_size=4), st.sampled_from([0, 1, 128]))
def test_every_question_to_git_has_an_answer_or_our_error(
    small: SmallGit, monkeypatch: pytest.MonkeyPatch, outputs: list[str], code: int
) -> None:
    source = GitSource(small.path)
    said = itertools.cycle(outputs)
    with monkeypatch.context() as patched:
        patched.setattr(Repository, "run", lambda *_, **__: GitResult(code, next(said), "a reason"))
        for ask in (
            lambda: source.resolve("a"),
            lambda: source.infos([ID], described=[ID]),
            lambda: source.holds_linux(ID),
            lambda: source.graph(ID, ID[::-1]),
            lambda: backports.find_fix(Path("/linux"), "a"),
            lambda: source.notes(),
        ):
            try:
                ask()
            except PerfbisectError as error:
                assert error.message
