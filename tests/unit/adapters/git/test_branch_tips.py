"""Branches that others push to, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.branch_tips import BranchTips
from bisector.errors import InfrastructureError, RequestError
from tests.support.small_git import SmallGit


@pytest.fixture
def origin(tmp_path: Path) -> SmallGit:
    small = SmallGit(tmp_path / "origin").make("a\nb: a\nc: b\nx: a\n")
    small.git("branch", "night", "a")
    return small


@pytest.fixture
def clone(tmp_path: Path, origin: SmallGit) -> SmallGit:
    origin.git("clone", "--quiet", str(origin.path), str(tmp_path / "clone"))
    return SmallGit(tmp_path / "clone")


def test_what_was_pushed_is_fetched_and_nothing_of_the_owners_is_moved(
    origin: SmallGit, clone: SmallGit
) -> None:
    before = clone.git("for-each-ref")
    tips = BranchTips(clone.path, "origin/night")
    tips.fetch()
    assert tips.tip() == origin.ids["a"]
    origin.git("branch", "--force", "night", "c")
    assert tips.tip() == origin.ids["a"]
    tips.fetch()
    assert tips.tip() == origin.ids["c"]
    now = clone.git("for-each-ref").splitlines()
    assert [line for line in now if "refs/perfbisect/" not in line] == before.splitlines()
    assert not (clone.path / ".git" / "FETCH_HEAD").exists()


def test_a_force_push_is_followed_and_seen(origin: SmallGit, clone: SmallGit) -> None:
    tips = BranchTips(clone.path, "origin/night")
    origin.git("branch", "--force", "night", "c")
    tips.fetch()
    old = tips.tip()
    origin.git("branch", "--force", "night", "x")
    tips.fetch()
    assert tips.tip() == origin.ids["x"]
    assert not tips.contains(tips.tip(), old)
    assert tips.contains(tips.tip(), origin.ids["a"])
    assert not tips.contains(tips.tip(), "f" * 40)
    assert tips.between(origin.ids["a"], old) == [origin.ids["b"], origin.ids["c"]]


def test_a_branch_of_the_repository_itself_is_taken_as_it_is(origin: SmallGit) -> None:
    tips = BranchTips(origin.path, "night")
    tips.fetch()
    origin.git("branch", "--force", "night", "b")
    assert tips.tip() == origin.ids["b"]


def test_a_tag_of_its_name_does_not_hold_a_branch_still(origin: SmallGit) -> None:
    origin.git("tag", "night", "x")
    assert BranchTips(origin.path, "night").tip() == origin.ids["a"]
    assert BranchTips(origin.path, "x").tip() == origin.ids["x"]
    assert BranchTips(origin.path, "HEAD").tip() == origin.ids["x"]


def test_the_newest_of_some_tags(origin: SmallGit, clone: SmallGit) -> None:
    origin.git("tag", "v6.9", "c")
    origin.git("tag", "v6.10", "b")
    origin.git("tag", "v7.1", "x")
    tips = BranchTips(clone.path, "v6.*")
    tips.fetch()
    assert tips.tip() == origin.ids["c"]  # whose commit is newer
    with pytest.raises(RequestError, match="no tag of"):
        BranchTips(clone.path, "v8.*").tip()


def test_a_server_that_is_away_is_infrastructure(origin: SmallGit, clone: SmallGit) -> None:
    with pytest.raises(RequestError, match=r"the remote 'origin' of .* has no branch 'gone'"):
        BranchTips(clone.path, "origin/gone").fetch()
    origin.path.rename(origin.path.with_name("moved"))
    with pytest.raises(InfrastructureError, match="cannot be fetched"):
        BranchTips(clone.path, "origin/night").fetch()


def test_programs_that_the_repository_names_are_not_run(
    origin: SmallGit, clone: SmallGit, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "program"
    script.write_text(f'#!/bin/sh\ntouch {ran}\nexec git-upload-pack "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    clone.git("config", "remote.origin.uploadpack", str(script))
    clone.git("config", "core.sshCommand", str(script))
    clone.git("config", "core.alternateRefsCommand", str(script))
    clone.git("config", "core.hooksPath", str(tmp_path))
    (tmp_path / "reference-transaction").symlink_to(script)
    BranchTips(clone.path, "origin/night").fetch()
    clone.git("config", "remote.origin.url", f"ext::{script}")
    with pytest.raises(InfrastructureError):
        BranchTips(clone.path, "origin/night").fetch()
    clone.git("config", "core.gitProxy", str(script))
    for url in ("ssh://nobody@127.0.0.1:1/x", "git://127.0.0.1:1/x"):
        clone.git("config", "remote.origin.url", url)
        with pytest.raises(InfrastructureError):
            BranchTips(clone.path, "origin/night").fetch()
    assert not ran.exists()


@pytest.mark.parametrize("name", ["", "--upload-pack=x", "^main", "a b", ":main"])
def test_what_cannot_be_a_branch_is_refused(origin: SmallGit, name: str) -> None:
    with pytest.raises(RequestError, match="cannot be the name of a branch"):
        BranchTips(origin.path, name)


def test_an_unknown_branch_or_repository_is_named(origin: SmallGit, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no branch 'nigth'"):
        BranchTips(origin.path, "nigth").tip()
    with pytest.raises(RequestError, match="there is no folder"):
        BranchTips(tmp_path / "nowhere", "main")
