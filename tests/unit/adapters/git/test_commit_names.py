"""Names of commits: those of two, those of lost ones, and what git says of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.commit_names import find_commit
from bisector.adapters.git.repository import Repository
from bisector.errors import InfrastructureError, RequestError
from tests.support.small_git import SmallGit


@pytest.fixture
def small(tmp_path: Path) -> SmallGit:
    return SmallGit(tmp_path / "linux").make("a\nb: a\nc: b\n")


def find(small: SmallGit, rev: str) -> str:
    return small.name(find_commit(Repository(small.path), rev, shallow=False))


def test_a_name_of_a_tag_and_a_branch_is_refused_unless_they_are_of_one_commit(small: SmallGit) -> None:
    small.git("branch", "c", "b")
    with pytest.raises(RequestError, match="'c~1' is the name of 2 commits") as caught:
        find(small, "c~1")
    assert caught.value.cure == "say which one: refs/tags/c~1 or refs/heads/c~1"
    assert small.ids["a"] in caught.value.details
    assert find(small, "refs/heads/c") == "b"
    assert find(small, "tags/c~1") == "b"
    small.git("branch", "--force", "c", small.ids["c"])
    assert find(small, "c~1") == "b"
    assert find(small, ":/change c") == find(small, "HEAD") == "c"


def test_a_lost_commit_is_no_wrong_name(small: SmallGit) -> None:
    lost = small.ids["c"]
    (small.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(InfrastructureError, match="has lost the commit of 'c'") as caught:
        find(small, "c")
    assert caught.value.details == lost
    with pytest.raises(RequestError, match="names no commit"):
        find(small, lost)


def test_git_s_own_reason_is_told(small: SmallGit) -> None:
    with pytest.raises(RequestError, match="names no commit") as caught:
        find(small, "@{upstream}")
    assert "no upstream configured for branch 'main'" in caught.value.details
    with pytest.raises(RequestError, match="'nowhere' names no commit") as caught:
        find(small, "nowhere")
    assert caught.value.details == ""
