"""Commits that another host has fetched are had from wherever they still are, and nothing else is moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.fetching import fetch_commits
from bisector.adapters.git.repository import Repository
from bisector.errors import InfrastructureError, RequestError
from tests.support.small_git import SmallGit


@pytest.fixture
def origin(tmp_path: Path) -> SmallGit:
    return SmallGit(tmp_path / "origin").make("a\nb: a\nc: b\nd: c\n")


@pytest.fixture
def clone(tmp_path: Path, origin: SmallGit) -> SmallGit:
    """A clone that has 'a' alone."""
    origin.git("branch", "old", "a")
    part = ("--no-local", "--no-tags", "--single-branch", "--branch", "old")
    origin.git("clone", "--quiet", *part, str(origin.path), str(tmp_path / "clone"))
    return SmallGit(tmp_path / "clone")


def has(small: SmallGit, sha: str) -> bool:
    return Repository(small.path).resolve(sha) is not None


def test_a_commit_of_no_branch_is_fetched_with_its_history_and_kept(
    origin: SmallGit, clone: SmallGit
) -> None:
    origin.git("checkout", "--quiet", "--detach", "a")
    for name in origin.git("for-each-ref", "--format=%(refname)").split():
        origin.git("update-ref", "-d", name)
    before, ids = clone.git("for-each-ref"), origin.ids
    assert not has(clone, ids["c"])
    fetch_commits(clone.path, (ids["c"], ids["b"], ids["a"]))
    assert (has(clone, ids["c"]), has(clone, ids["b"]), has(clone, ids["d"])) == (True, True, False)
    clone.git("gc", "--quiet", "--prune=now")
    assert has(clone, ids["b"])
    now = clone.git("for-each-ref").splitlines()
    assert [line for line in now if "refs/perfbisect/" not in line] == before.splitlines()
    assert not (clone.path / ".git" / "FETCH_HEAD").exists()


def test_each_remote_is_asked_until_one_has_it(tmp_path: Path, origin: SmallGit, clone: SmallGit) -> None:
    clone.git("remote", "rename", "origin", "zealous")
    clone.git("remote", "add", "origin", str(tmp_path / "nowhere"))
    fetch_commits(clone.path, [origin.ids["d"]])
    assert has(clone, origin.ids["d"])


def test_what_no_remote_has_is_told_with_what_each_says(clone: SmallGit) -> None:
    clone.git("remote", "add", "other", "/nowhere")
    with pytest.raises(InfrastructureError, match="has no commit dddddddddddd, nor has a remote") as caught:
        fetch_commits(clone.path, ["d" * 40])
    assert "origin: " in caught.value.details
    assert "other: " in caught.value.details
    assert f"fetch REMOTE {'d' * 40}" in caught.value.cure


def test_without_a_repository_or_a_remote(tmp_path: Path, origin: SmallGit) -> None:
    fetch_commits(origin.path, [origin.ids["d"]])
    with pytest.raises(InfrastructureError, match="has no commit"):
        fetch_commits(origin.path, ["d" * 40])
    with pytest.raises(RequestError, match="there is no folder"):
        fetch_commits(tmp_path / "nowhere", ["d" * 40])


def test_a_remote_whose_name_is_an_option_is_not_asked(clone: SmallGit, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "program"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    script.chmod(0o755)
    with (clone.path / ".git/config").open("a") as config:
        config.write(f'[remote "--upload-pack={script}"]\n\turl = {clone.path}\n')
    with pytest.raises(InfrastructureError):
        fetch_commits(clone.path, ["d" * 40])
    assert not ran.exists()
