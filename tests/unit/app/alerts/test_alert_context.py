"""What alerts know of git's commits, in a repository that loses some and gets them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.alerts.alert_context import AlertContext, alert_context
from bisector.app.alerts.suspects import suspect_found
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.schemas.settings import Settings
from tests.support.series.alert_lab import found
from tests.support.small_git import SmallGit


@pytest.fixture
def origin(tmp_path: Path) -> SmallGit:
    return SmallGit(tmp_path / "origin").make("a\nb: a\nc: b\nd: c\n")


def context_of(root: Path) -> AlertContext:
    return alert_context(Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state")))


def test_a_commit_that_git_has_lost_is_in_no_range_until_it_is_back(tmp_path: Path, origin: SmallGit) -> None:
    ids, copy = origin.ids, tmp_path / "linux"
    origin.git("branch", "old", "b")
    part = ("--no-local", "--no-tags", "--single-branch", "--branch", "old")
    origin.git("clone", "--quiet", *part, str(origin.path), str(copy))
    commits = context_of(tmp_path).commits
    away = origin.path.rename(tmp_path / "away")
    assert commits(str(copy), ids["a"], ids["b"]) == {ids["b"]}
    for good, bad in (("a", "d"), ("d", "b")):  # either end
        assert commits(str(copy), ids[good], ids[bad]) == frozenset()
    away.rename(origin.path)
    assert commits(str(copy), ids["a"], ids["d"]) == frozenset(), "its remote is asked once an hour"
    origin.git("-C", str(copy), "fetch", "--quiet", "origin", "main")
    assert commits(str(copy), ids["a"], ids["d"]) == {ids["b"], ids["c"], ids["d"]}


def test_a_commit_that_another_worker_has_fetched_is_fetched_here(tmp_path: Path, origin: SmallGit) -> None:
    """It is not on any branch any more."""
    ids, copy = origin.ids, tmp_path / "linux"
    origin.git("branch", "old", "b")
    part = ("--no-local", "--no-tags", "--single-branch", "--branch", "old")
    origin.git("clone", "--quiet", *part, str(origin.path), str(copy))
    origin.git("checkout", "--quiet", "--detach", "a")
    for name in origin.git("for-each-ref", "--format=%(refname)").split():
        origin.git("update-ref", "-d", name)
    commits = context_of(tmp_path).commits
    assert commits(str(copy), ids["a"], ids["d"]) == {ids["b"], ids["c"], ids["d"]}


def test_ends_that_stand_the_other_way_round_are_of_no_range(tmp_path: Path, origin: SmallGit) -> None:
    """A branch was set back behind the last good commit."""
    ids, commits = origin.ids, context_of(tmp_path).commits
    assert commits(str(origin.path), ids["d"], ids["b"]) == frozenset()
    assert commits(str(origin.path), ids["b"], ids["d"]) == {ids["c"], ids["d"]}


def test_a_repository_that_is_away_comes_back(tmp_path: Path, origin: SmallGit) -> None:
    ids, commits = origin.ids, context_of(tmp_path).commits
    away = origin.path.rename(tmp_path / "away")
    assert commits(str(origin.path), ids["a"], ids["b"]) == frozenset()
    away.rename(origin.path)
    assert commits(str(origin.path), ids["a"], ids["b"]) == {ids["b"]}


def test_a_damaged_repository_is_not_taken_for_a_lost_commit(tmp_path: Path, origin: SmallGit) -> None:
    ids = origin.ids
    (origin.path / ".git/objects" / ids["c"][:2] / ids["c"][2:]).unlink()  # between both ends
    with pytest.raises(InfrastructureError, match="git cannot read the repository"):
        context_of(tmp_path).commits(str(origin.path), ids["a"], ids["d"])


def test_a_night_is_judged_though_an_older_alert_names_a_lost_commit(
    tmp_path: Path, origin: SmallGit
) -> None:
    ids, context = origin.ids, context_of(tmp_path)
    repo = str(origin.path)
    lost = suspect_found(context, found(0, 0, repo=repo, last_good="a" * 40, first_bad=ids["b"]), "")
    kept = suspect_found(context, found(0, 0, repo=repo, last_good=ids["c"], first_bad=ids["d"]), "")
    assert kept.id != lost.id
